// @vitest-environment jsdom
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, describe, expect, it } from "vitest";
import { readable, type Saying, Spoken } from "../../src/chat/spoken";
import { newReply } from "../../src/chat/turns";
import { DRAWING } from "../../src/markdown/stream";
import { SETTINGS } from "./talk";

afterEach(() => document.body.replaceChildren());

/** The region, and what it has been made to say. */
function region() {
  const saying = signal<Saying>({ serial: 0, text: "", reply: null });
  const root = document.body.appendChild(document.createElement("div"));
  act(() => render(<Spoken saying={saying} />, root));
  const changes: MutationRecord[][] = [];
  const kinds = { subtree: true, childList: true, characterData: true };
  new MutationObserver((records) => changes.push(records)).observe(root, kinds);
  const words = () => root.querySelector("#spoken")?.firstElementChild;
  const say = (text: string, reply: Saying["reply"] = null) =>
    act(() => {
      saying.value = { serial: saying.value.serial + 1, text, reply };
    });
  return { words, say, changes };
}

/** A reply of which so much is drawn, and not all. */
function drawn(html: string) {
  const reply = newReply(SETTINGS, 0);
  const article = document.body.appendChild(document.createElement("article"));
  article.id = `turn-${reply.key}`;
  article.innerHTML = `<div class="thoughts-text">Hm</div><div class="text">${html}</div>`;
  const text = article.querySelector(".text") as HTMLElement;
  text.setAttribute(DRAWING, "");
  const whole = () => act(async () => text.removeAttribute(DRAWING));
  return { reply, article, text, whole };
}

describe("Spoken", () => {
  it("says equal sentences each time", () => {
    const { words, say } = region();
    say("Copied.");
    const first = words();
    expect(first?.textContent).toBe("Copied.");
    say("Copied.");
    expect(words()?.textContent).toBe("Copied.");
    expect(words()).not.toBe(first);
  });

  it("says a reply as it is drawn, once that is whole, and not what was thought", async () => {
    const { words, say, changes } = region();
    const { reply, text, whole } = drawn("<p>So</p>");
    say("stopped", reply);
    await act(async () => {
      text.innerHTML = "<p>So <strong>it</strong> is</p>";
    });
    expect(words()?.textContent).toBe("");
    await whole();
    expect(words()?.textContent).toBe("So it is\nstopped");
    expect(changes.length).toBe(1);
  });

  it("says a long one's beginning", async () => {
    const { words, say } = region();
    const { reply, whole } = drawn(`<p>${"word ".repeat(2_000)}</p>`);
    await whole();
    say("", reply);
    expect(words()?.textContent).toMatch(/^word .*… and more in the conversation\n$/s);
    expect(words()?.textContent?.length).toBeLessThan(4_100);
  });

  it("does not say a reply that is gone before it is whole", async () => {
    const { words, say } = region();
    const { reply, article, whole } = drawn("<p>So</p>");
    say("", reply);
    article.remove();
    await whole();
    expect(words()?.textContent).toBe("");
  });
});

it("reads a block a line, and no controls", () => {
  const { text } = drawn(
    "<h3>One</h3><ul><li>two <em>three</em></li><li><p>four</p></li></ul>" +
      '<div class="md-code"><div><span>js</span><span role="status">Copied</span><button>Copy</button></div>' +
      "<pre><code>a = 1\nb</code></pre></div><table><tbody><tr><td>x</td><td>y</td></tr></tbody></table>",
  );
  expect(readable(text)).toBe("One\ntwo three\nfour\njs\na = 1\nb\nx\ny\n");
});
