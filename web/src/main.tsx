import { render } from "preact";
import { App } from "./app";
import { keepForOffline } from "./offline/register";
import { keySignal } from "./settings/key";
import { settingsStore } from "./settings/store";
import { Server } from "./wire/server";

const page = document.getElementById("page");
if (page) {
  page.textContent = "";
  render(<App server={new Server(document.baseURI, keySignal())} settings={settingsStore()} />, page);
}
keepForOffline(document.baseURI);
