// What the realtime socket says, as far as the page reads it (docs/realtime.md; reading.ts sees to the types). Fields
// that a server may leave out are optional here, and whoever reads one says what it does without it.

/** The tree one verify step checked. Node 0 is the pending token; parents come before children. All arrays: [n]. */
export interface StepTree {
  texts: string[];
  parents: number[];
  /** The drafters whose guess the node is, joined by "+"; "" for the root. */
  sources: string[];
  /** The drafter's own probability that the guess follows its parent. */
  estimates: number[];
  /** What the planner believed, learned from acceptance. */
  chances: number[];
  /** Accepted nodes, root first. */
  path: number[];
}

/** One verify step of one reply. */
export interface Step {
  /** Wall time in milliseconds. */
  ms: number;
  /** Rows verified for this reply, the pending token's included. */
  nodes: number;
  drafted: number;
  accepted: number;
  emitted: number;
  /** Why so many guesses were verified; null where the server does not say. */
  reason: string | null;
  /** What the step brought: accepted guesses, then the model's own token. source: "" for that one. */
  tokens: { text: string; source: string }[];
  /** null: the server told the step without it (a slow client, a resumed reply). */
  tree: StepTree | null;
}

/** Figures beside a delta. `steps` and `spans` come only where a trace was asked for. */
export interface Spec {
  drafted: number;
  accepted: number;
  emitted: number;
  /** Of the prompt, with a reply's first delta: its tokens, and how many of them were in the cache. */
  input_tokens?: number;
  cached_tokens?: number;
  steps?: Step[];
  /** Of the delta's own text: code points and source, in order. */
  spans?: [number, string][];
}

export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  input_token_details?: { cached_tokens?: number };
}

export interface ResponseBody {
  id?: string;
  status?: "in_progress" | "completed" | "cancelled" | "failed" | "incomplete";
  status_details?: { error?: Fault } | null;
  usage?: Usage | null;
}

export interface Fault {
  message?: string;
  code?: string | null;
  /** The client's event it is about. */
  event_id?: string | null;
}

/** Any event: known fields are typed, `type` says which are there. */
export interface ServerEvent {
  type: string;
  session?: { model?: string };
  response?: ResponseBody;
  response_id?: string;
  item_id?: string;
  item?: { id?: string };
  delta?: string;
  x_seq?: number;
  x_spec?: Spec;
  /** Of x_input_text.prefilled: the prompt's tokens, and how many of them are computed. */
  tokens?: number;
  cached_tokens?: number;
  /** Of the same: code points of the pending text it is about. */
  text_end?: number;
  /** Of x_response.clause: where it ends, in code points of the item's text. */
  end?: number;
  error?: Fault;
}

/** An event of ours. */
export type ClientEvent = { type: string; event_id?: string } & Record<string, unknown>;
