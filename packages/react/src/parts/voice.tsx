import { useRef, useState } from 'react';
import type { Attachment as AttachmentData } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { linkOf } from '../hooks/link.ts';
import { Path } from './icon.tsx';

const height = 32;
const play = 'M6 4l14 8-14 8z';
const pause = 'M15 4h3v16h-3zM6 4h3v16H6z';
/** Without a waveform a voice note shows a flat line. */
const flat = new Array<number>(32).fill(0);

/** The loudness of a voice note over its length, 0 to 255. */
function barsOf(waveform: string | undefined): readonly number[] {
  if (waveform === undefined) return flat;
  try {
    return Array.from(atob(waveform), (byte) => byte.charCodeAt(0));
  } catch {
    return flat;
  }
}
/** A line for each bar, in one path. */
const lines = (bars: readonly number[]): string =>
  bars
    .map((loud, i) => {
      const size = 1 + (loud / 255) * (height / 2 - 2);
      return `M${i + 0.5} ${height / 2 - size}v${2 * size}`;
    })
    .join('');
const clock = (ms: number): string => {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
};

/** A voice note: its waveform, its length, and a button to play it. The file is asked for when somebody plays it. */
export default function VoiceNote({ attachment }: { attachment: AttachmentData }) {
  const { strings, client } = useParley();
  const audio = useRef<HTMLAudioElement>(null);
  const [playing, setPlaying] = useState(false);
  const [gone, setGone] = useState(false);
  const [at, setAt] = useState(0);
  const [found, setFound] = useState(0);
  const { id, durationMs = found } = attachment;
  const bars = barsOf(attachment.waveform);
  const part = durationMs > 0 ? Math.min(1, at / durationMs) : 0;

  const press = async (): Promise<void> => {
    const element = audio.current!;
    if (playing) return element.pause();
    try {
      // A link is valid for some minutes: after a failure a new one is requested.
      if (!element.src || element.error) element.src = (await linkOf(client, id, true)).url;
      setGone(false);
      await element.play();
    } catch (error) {
      if ((error as Error).name !== 'AbortError') setGone(true);
    }
  };
  const seek = (ms: number): void => {
    setAt(ms);
    if (audio.current?.src) audio.current.currentTime = ms / 1000;
  };
  const label = playing ? strings.pause : strings.play;
  return (
    <div className="parley-voice" role="group" aria-label={strings.voiceNote}>
      <button type="button" aria-label={label} title={label} onClick={() => void press()}>
        <Path d={playing ? pause : play} size={16} />
      </button>
      <span className="parley-wave">
        <svg viewBox={`0 0 ${bars.length} ${height}`} preserveAspectRatio="none" aria-hidden="true">
          <path d={lines(bars)} />
          <path d={lines(bars.slice(0, Math.round(part * bars.length)))} data-played="" />
        </svg>
        <input
          type="range"
          min={0}
          max={Math.max(1, Math.round(durationMs))}
          value={Math.round(part * durationMs)}
          aria-label={strings.position}
          aria-valuetext={clock(part * durationMs)}
          onChange={(event) => seek(Number(event.target.value))}
        />
      </span>
      <small>
        {gone ? strings.fileGone : <bdi dir="ltr">{clock(playing || at > 0 ? at : durationMs)}</bdi>}
      </small>
      <audio
        ref={audio}
        preload="none"
        onPlay={() => setPlaying(true)}
        onPause={() => setPlaying(false)}
        onEnded={() => seek(0)}
        onTimeUpdate={(event) => setAt(event.currentTarget.currentTime * 1000)}
        onDurationChange={({ currentTarget: { duration } }) => {
          if (Number.isFinite(duration)) setFound(duration * 1000);
        }}
      />
    </div>
  );
}
