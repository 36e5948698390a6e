// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { shown } from "./html";

const ALLOWED = new Set(
  "A BLOCKQUOTE BR BUTTON CODE DEL DIV EM H3 H4 H5 H6 HR INPUT LI OL P PRE SPAN STRONG TABLE TBODY TD TH THEAD TR UL".split(
    " ",
  ),
);
const ATTRIBUTES = new Set(
  "class dir href title rel target start scope type disabled checked role aria-label".split(" "),
);

/** Attacks known from Markdown renderers and sanitisers. */
const ATTACKS = [
  "<script>alert(1)</script>",
  "text <script src=//e.example/x.js></script> text",
  "<img src=x onerror=alert(1)>",
  "<svg/onload=alert(1)>",
  "<style>body{display:none}</style>",
  '<p style="position:fixed" onclick="alert(1)">x</p>',
  '<form id="page"><input name="attributes"><input name="nodeName"></form>',
  '<a id="config"></a><a id="config" name="url" href="javascript:alert(1)">x</a>',
  "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
  "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
  '<svg></p><style><a id="</style><img src=1 onerror=alert(1)>">',
  '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
  "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
  "<!--><img src=x onerror=alert(1)>-->",
  "<![CDATA[><img src=x onerror=alert(1)>]]>",
  "`<img src=x onerror=alert(1)>`",
  "```html\n<img src=x onerror=alert(1)>\n```",
  '```"><img src=x onerror=alert(1)>\ncode\n```',
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](java\tscript:alert(1))",
  "[x](<java\tscript:alert(1)>)",
  "[x](javascript&#58;alert(1))",
  "[x](&#106;avascript:alert(1))",
  "[x](&Tab;javascript:alert(1))",
  "[x](\u0001javascript:alert(1))",
  "[x](vbscript:msgbox(1))",
  "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
  "[x](//e.example) [y](/v1/models) [z](#/race) [w](file:///etc/passwd)",
  "<javascript:alert(1)>",
  "[x]\n\n[x]: javascript:alert(1)",
  '[x](https://e.example "\\" onmouseover=\\"alert(1)")',
  '[x](https://e.example/"onmouseover="alert(1))',
  "![x](https://e.example/pixel.png) ![y](javascript:alert(1)) ![z](data:image/svg+xml,<svg onload=alert(1)>)",
  '![" onerror="alert(1)](https://e.example)',
  "| <img src=x onerror=alert(1)> |\n|---|\n| <script>alert(1)</script> |",
  "# <img src=x onerror=alert(1)>",
  "- [ ] <input autofocus onfocus=alert(1)>",
  "&lt;img src=x onerror=alert(1)&gt;",
  "&#60;script&#62;alert(1)&#60;/script&#62;",
];

describe("A hostile text", () => {
  it.each(ATTACKS)("becomes nothing but text and plain elements: %j", (text) => {
    for (const root of [shown([text]), shown([...text], (index) => index % 8 === 0)]) {
      for (const element of root.querySelectorAll("*")) {
        expect(ALLOWED).toContain(element.tagName);
        for (const name of element.getAttributeNames()) expect(ATTRIBUTES).toContain(name);
        expect(element.namespaceURI).toBe("http://www.w3.org/1999/xhtml");
      }
      for (const link of root.querySelectorAll("a")) {
        expect(link.getAttribute("href")).toMatch(/^(https?:\/\/|mailto:)/);
        expect(link.target).toBe("_blank");
        expect(link.rel).toBe("noopener noreferrer nofollow");
      }
    }
  });

  it("is shown, not swallowed, where it is HTML", () => {
    const text = "<div onclick=x>a</div> <!-- b --> <script>c</script>";
    expect(shown([text]).textContent).toBe(text);
  });

  it("shows a picture as a link to it, and an address that may not be one as text", () => {
    const root = shown(["![a cat](https://e.example/cat.png) [click](javascript:alert(1)) [here](/v1)"]);
    expect(root.querySelectorAll("a")).toHaveLength(1);
    expect(root.querySelector("a")?.href).toBe("https://e.example/cat.png");
    expect(root.textContent).toBe("a cat (https://e.example/cat.png) click (javascript:alert(1)) here (/v1)");
  });

  it("goes only so deep, and stays whole", () => {
    for (const text of [
      ">".repeat(10_000),
      `${"> ".repeat(10_000)}x`,
      `${"- ".repeat(10_000)}x`,
      Array.from({ length: 200 }, (_, depth) => `${"  ".repeat(depth)}- x`).join("\n"),
      "[".repeat(10_000),
      `${"*a ".repeat(3000)}${"a* ".repeat(3000)}`,
    ]) {
      const root = shown([text]);
      expect(depth(root)).toBeLessThan(80);
      expect(root.textContent?.length).toBeGreaterThan(0);
    }
  });
});

function depth(root: Element): number {
  let deepest = 0;
  for (const leaf of root.querySelectorAll(":not(:has(*))")) {
    let count = 0;
    for (let at: Element | null = leaf; at; at = at.parentElement) count += 1;
    deepest = Math.max(deepest, count);
  }
  return deepest;
}
