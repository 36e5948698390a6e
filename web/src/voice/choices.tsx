// Which language is heard, and how replies sound.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Switch } from "../shell/switch";
import { change, languageName, RATE } from "./options";
import type { Room } from "./room";

const LANGUAGES =
  "en-US en-GB de-DE fr-FR es-ES it-IT pt-BR nl-NL pl-PL sv-SE tr-TR uk-UA ar-EG hi-IN id-ID ja-JP ko-KR zh-CN";

/** The browser's voices; they may come after a while. */
function useVoices(synthesis: SpeechSynthesis | null): SpeechSynthesisVoice[] {
  const [voices, set] = useState<SpeechSynthesisVoice[]>([]);
  useEffect(() => {
    if (!synthesis) return;
    const look = () => set(synthesis.getVoices());
    look();
    synthesis.addEventListener("voiceschanged", look);
    return () => synthesis.removeEventListener("voiceschanged", look);
  }, [synthesis]);
  return voices;
}

export function Choices({ room }: { room: Room }) {
  const { language, aloud, voice, rate } = room.options.value;
  const voices = useVoices(room.synthesis);
  const languages = useMemo(() => {
    const codes = new Set([language, ...navigator.languages, ...LANGUAGES.split(" ")]);
    return [...codes].map((code) => ({ code, name: languageName(code) })).filter(({ name }) => name !== null);
  }, [language]);
  return (
    <section aria-labelledby="voice-choices">
      <h2 id="voice-choices">Voices</h2>
      <label for="voice-language">Language you speak</label>
      <select
        id="voice-language"
        value={language}
        onChange={(event) => change(room.options, { language: event.currentTarget.value })}
      >
        {languages.map(({ code, name }) => (
          <option key={code} value={code}>
            {name}
          </option>
        ))}
      </select>
      {voices.length === 0 ? (
        <p class="voice-note">This browser has no voice; replies light up word by word as they would be heard.</p>
      ) : (
        <>
          <Switch on={aloud} change={(on) => change(room.options, { aloud: on })}>
            Speak replies aloud
          </Switch>
          <label for="voice-voice">Voice</label>
          <select
            id="voice-voice"
            value={voice}
            disabled={!aloud}
            onChange={(event) => change(room.options, { voice: event.currentTarget.value })}
          >
            <option value="">The browser's choice</option>
            {voices.map(({ voiceURI, name, lang }) => (
              <option key={voiceURI} value={voiceURI}>
                {name} ({lang})
              </option>
            ))}
          </select>
          <label for="voice-rate">Rate: {rate.toFixed(1)}</label>
          <input
            id="voice-rate"
            type="range"
            min={RATE.low}
            max={RATE.high}
            step={0.1}
            value={rate}
            disabled={!aloud}
            onInput={(event) => change(room.options, { rate: event.currentTarget.valueAsNumber })}
          />
        </>
      )}
    </section>
  );
}
