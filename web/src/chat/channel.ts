// What tabs tell each other. A browser that lets them tell nothing leaves each tab alone, and the chat works as well.

export interface Channel<Word> {
  tell(word: Word): void;
}

/** heard: another tab of this page told something. */
export function channel<Word>(name: string, heard: (word: Word) => void): Channel<Word> {
  try {
    const others = new BroadcastChannel(name);
    others.onmessage = ({ data }: MessageEvent<Word>) => heard(data);
    return { tell: (word) => others.postMessage(word) };
  } catch {
    return { tell: () => {} };
  }
}
