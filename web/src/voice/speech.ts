// What the loop needs of ears and mouths. The browser's own and the timed ones for reading along keep the same promises.

/** How far a clause has been spoken. Called in this order, `word` any number of times. */
export interface Progress {
  started(): void;
  /** codePoints: of the clause, spoken before the word that begins now. */
  word(codePoints: number): void;
  finished(): void;
}

export interface Voice {
  /** Clauses are spoken one after the other, in the order they come in. */
  speak(clause: string, progress: Progress): void;
  /** Silence at once; of clauses that are spoken or wait, nothing more is told. */
  stop(): void;
}

/** Speaks one clause at a time. */
export interface Speaker {
  /** Only after the one before has finished, or `hush`. */
  say(clause: string, progress: Progress): void;
  /** Silence at once; nothing more is told of the running clause. */
  hush(): void;
}

export interface Ears {
  /** text: everything heard since `begin`. settled: the recogniser will not revise it. */
  onWords(text: string, settled: boolean): void;
  /** Listening has ended by itself or after `end`; all that was said has been told. */
  onEnd(): void;
  /** A sentence for the person; `onEnd` follows. */
  onProblem(sentence: string): void;
}

export interface Recognition {
  /** Listens, in a language such as "en-US"; "": the page's. */
  begin(language: string, ears: Ears): void;
  /** What is said from now on belongs to a new turn: `onWords` starts from nothing. */
  turn(): void;
  /** No more is heard; what was said until now is still told, then `onEnd`. */
  end(): void;
  /** Silence at once: nothing more is told. */
  abort(): void;
}
