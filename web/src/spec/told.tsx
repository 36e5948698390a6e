// A reply's figures as they are called and written, wherever they are shown.

import { decimal, milliseconds, percent, whole } from "../shell/format";
import { Figures } from "./figures";

export type FigureName = "ttft" | "tpot" | "rate" | "per-step" | "acceptance" | "cache-hit" | "tokens";

interface Entry {
  name: string;
  /** What the name stands for, where it does not say so itself. */
  meaning?: string;
  value: (figures: Figures) => string;
  /** What a share is of. */
  of?: (figures: Figures) => number | null;
}

const FIGURES: Readonly<Record<FigureName, Entry>> = {
  ttft: { name: "TTFT", meaning: "time to first token", value: ({ ttft }) => milliseconds(ttft) },
  tpot: { name: "TPOT", meaning: "time per output token after the first", value: ({ tpot }) => milliseconds(tpot) },
  rate: { name: "Tokens/s", value: ({ rate }) => decimal(rate) },
  "per-step": { name: "Tokens per step", meaning: "1 is plain decoding", value: ({ perStep }) => decimal(perStep) },
  acceptance: {
    name: "Guesses accepted",
    value: ({ acceptance }) => percent(acceptance),
    of: ({ drafted }) => drafted,
  },
  "cache-hit": {
    name: "Cache hit",
    meaning: "share of the prompt that was in the cache",
    value: ({ cacheHit }) => percent(cacheHit),
    of: ({ prompt }) => prompt,
  },
  tokens: { name: "Tokens", value: ({ tokens }) => whole(tokens || null) },
};
const NONE = new Figures(null);

/** What the names of these figures stand for, in sentences. */
export function meanings(which: readonly FigureName[]): string {
  return which
    .map((each) => FIGURES[each])
    .filter(({ meaning }) => meaning !== undefined)
    .map(({ name, meaning }) => `${name}: ${meaning}.`)
    .join(" ");
}

export interface FigureListProps {
  /** null: there is no reply yet. */
  figures: Figures | null;
  which: readonly FigureName[];
  /** Of the list. */
  class?: string;
  /** Names that say more than the usual ones. */
  names?: Partial<Record<FigureName, string>>;
  /** Whether values have the names of their figures as ids: those of one list of a page. */
  ids?: boolean;
  /** Where there is little room, and what the names stand for is told beside the list. */
  brief?: boolean;
}

export function FigureList({ figures, which, class: styled, names, ids, brief }: FigureListProps) {
  return (
    <dl class={styled}>
      {which.map((each) => {
        const { name, meaning, value, of } = FIGURES[each];
        const all = brief ? null : of?.(figures ?? NONE);
        return (
          <div key={each}>
            <dt>
              {names?.[each] ?? name}
              {meaning && !brief && <span class="unseen">, {meaning}</span>}
            </dt>
            <dd id={ids ? each : undefined}>
              {value(figures ?? NONE)}
              {all ? ` of ${whole(all)}` : ""}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}
