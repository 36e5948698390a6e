// When what happened in one turn: the person speaks, the model answers, the person breaks in. Times are milliseconds of
// the loop's clock; null means that it has not happened.

import type { ServerEvent, Usage } from "../wire/events";

const KEPT = 256; // times of appends and of prompts made ready, the newest; a turn rarely has as many

export interface Ready {
  at: number;
  /** Of the prompt if the turn had ended here. */
  tokens: number;
  /** Of them, those that were computed. */
  cached: number;
}

export class Turn {
  readonly begun: number;
  readonly appends: number[] = [];
  readonly ready: Ready[] = [];
  /** The recogniser told of the newest words. */
  heard: number;
  /** The turn was ended: by a silence, a released button, a press. */
  ended: number | null = null;
  /** The words were committed and the reply asked for: later than `ended` where something had to end first. */
  asked: number | null = null;
  firstText: number | null = null;
  firstClause: number | null = null;
  /** The voice began. */
  firstSound: number | null = null;
  brokeIn: number | null = null;
  cancelled: number | null = null;
  /** Tokens of the prompt, and those that were found computed; null until the reply has ended. */
  prompt: number | null = null;
  cached: number | null = null;
  /** Code points of the reply, and how many were heard; null unless it was cut. */
  cut: { length: number; heard: number } | null = null;

  constructor(begun: number) {
    this.begun = begun;
    this.heard = begun;
  }

  append(at: number): void {
    bounded(this.appends, at);
  }

  /** told: x_input_text.prefilled. */
  prefilled(at: number, { tokens = 0, cached_tokens: cached = 0 }: ServerEvent): void {
    bounded(this.ready, { at, tokens, cached });
  }

  finish(usage: Usage | null | undefined): void {
    this.prompt = usage?.input_tokens ?? null;
    this.cached = usage?.input_token_details?.cached_tokens ?? null;
  }
}

function bounded<Value>(values: Value[], value: Value): void {
  values.push(value);
  if (values.length > KEPT) values.shift();
}
