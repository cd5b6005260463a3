import { useEffect, useRef, useState } from 'react';
import { useConversation } from '@parley/react';
import { IconButton } from './controls.tsx';

/** A recording ends by itself after so many milliseconds. */
const longest = 5 * 60_000;
const bars = 64;

const canRecord = (): boolean =>
  typeof MediaRecorder !== 'undefined' && navigator.mediaDevices?.getUserMedia !== undefined;

/** Records until it is pressed again, then sends the voice note. */
export function Recorder({ conversationId }: { conversationId: string }) {
  const conversation = useConversation(conversationId);
  const running = useRef<MediaRecorder | null>(null);
  const [state, setState] = useState<'idle' | 'recording' | 'sending'>('idle');
  const [problem, setProblem] = useState('');
  // Nothing is sent after a change to another conversation.
  useEffect(
    () => () => {
      const recorder = running.current;
      if (recorder) recorder.onstop = null;
      end(recorder);
    },
    [conversationId],
  );

  const send = async (chunks: Blob[], type: string, durationMs: number): Promise<void> => {
    setState('sending');
    const recording = new Blob(chunks, { type });
    const waveform = await waveformOf(recording);
    const attachment = await conversation!.upload(recording, {
      filename: `voice-note.${/ogg|mp4/.exec(type)?.[0] ?? 'webm'}`,
      durationMs: Math.max(1, Math.round(durationMs)),
      waveform,
    });
    conversation!.send({ attachments: [attachment.id] });
  };
  const begin = async (): Promise<void> => {
    setProblem('');
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    const recorder = new MediaRecorder(stream);
    const chunks: Blob[] = [];
    const began = performance.now();
    const timer = setTimeout(() => end(recorder), longest);
    running.current = recorder;
    recorder.ondataavailable = ({ data }) => chunks.push(data);
    recorder.onstop = () => {
      clearTimeout(timer);
      running.current = null;
      send(chunks, recorder.mimeType, performance.now() - began)
        .catch((error: unknown) => setProblem((error as Error).message))
        .finally(() => setState('idle'));
    };
    recorder.start();
    setState('recording');
  };
  if (!canRecord()) return null;
  return (
    <>
      <IconButton
        icon={state === 'recording' ? 'stop' : 'mic'}
        label={state === 'recording' ? 'Send the voice note' : 'Record a voice note'}
        pressed={state === 'recording'}
        onPress={() => {
          if (state === 'recording') end(running.current);
          else if (state === 'idle') begin().catch((error: unknown) => setProblem((error as Error).message));
        }}
      />
      {problem === '' ? null : <small role="alert">{problem}</small>}
    </>
  );
}

/** Stops the recorder, and gives the microphone back. */
function end(recorder: MediaRecorder | null): void {
  if (!recorder) return;
  if (recorder.state !== 'inactive') recorder.stop();
  for (const track of recorder.stream.getTracks()) track.stop();
}

/** The loudest sample of each of 64 parts of the recording, as base64. */
async function waveformOf(recording: Blob): Promise<string> {
  const sound = await new OfflineAudioContext(1, 1, 44_100).decodeAudioData(await recording.arrayBuffer());
  const samples = sound.getChannelData(0);
  const peaks = Array.from({ length: bars }, (_, i) => {
    let peak = 0;
    const to = Math.ceil(((i + 1) * samples.length) / bars);
    for (let at = Math.floor((i * samples.length) / bars); at < to; at++)
      peak = Math.max(peak, Math.abs(samples[at] ?? 0));
    return peak;
  });
  const loudest = Math.max(...peaks, 0.01);
  return btoa(String.fromCharCode(...peaks.map((peak) => Math.round((peak / loudest) * 255))));
}
