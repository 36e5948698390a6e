import { render } from "preact";
import { keepForOffline } from "./offline/register";
import { settingsStore } from "./settings/store";
import { App } from "./shell/app";
import { Server } from "./shell/server";

const page = document.getElementById("page");
if (page) {
  page.textContent = "";
  render(<App server={new Server(document.baseURI)} settings={settingsStore()} />, page);
}
keepForOffline(document.baseURI);
