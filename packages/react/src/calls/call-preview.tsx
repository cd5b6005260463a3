import { forwardRef, useEffect, useRef, useState } from 'react';
import type { ComponentPropsWithoutRef, ReactNode } from 'react';
import type { JoinOptions } from '@parley/client/calls';
import { useClient } from '../hooks/context.ts';
import { UserAvatar } from '../parts/avatar.tsx';
import { cx, useFrame } from '../parts/tools.ts';
import { Control } from './controls.tsx';
import { DevicePicker } from './device-picker.tsx';
import { useCallStrings, useDevices } from './hooks.ts';

export interface CallPreviewProps extends Omit<ComponentPropsWithoutRef<'section'>, 'children'> {
  /** `audio` leaves the camera out. */
  kind?: 'audio' | 'video';
  /** Gets the chosen devices, for `start`, `join` and `accept`. Take the preview away then: it holds the devices. */
  onJoin: (options: Required<Pick<JoinOptions, 'mic' | 'camera'>>) => void;
  onCancel?: () => void;
  /** The text of the button; "Join" unless given. */
  label?: ReactNode;
}

type Asked = 'off' | 'asking' | 'ready' | 'denied' | 'missing';

/** States: off --on--> asking --allowed--> ready, --refused--> denied, --none, or in use--> missing; any --off--> off. */
function useTrack(kind: 'audio' | 'video', on: boolean, device: string | undefined) {
  const [now, setNow] = useState<{ state: Asked; track: MediaStreamTrack | null }>({
    state: 'off',
    track: null,
  });
  useEffect(() => {
    if (!on) return setNow({ state: 'off', track: null });
    let over = false;
    let held: MediaStreamTrack | undefined;
    setNow({ state: 'asking', track: null });
    const open = async (): Promise<void> => {
      try {
        const wanted = { [kind]: device === undefined ? true : { deviceId: { exact: device } } };
        // Pages without https have no devices, and this throws.
        const stream = await navigator.mediaDevices.getUserMedia(wanted);
        held = stream.getTracks()[0]!;
        if (over) held.stop();
        else setNow({ state: 'ready', track: held });
      } catch (e) {
        const denied = (e as Error).name === 'NotAllowedError';
        if (!over) setNow({ state: denied ? 'denied' : 'missing', track: null });
      }
    };
    void open();
    return () => {
      over = true;
      held?.stop();
    };
  }, [kind, on, device]);
  return now;
}

/** What others will see and hear, and the choice of devices, before one joins. */
export const CallPreview = forwardRef<HTMLElement, CallPreviewProps>(function CallPreview(props, ref) {
  const { kind = 'video', onJoin, onCancel, label, className, ...rest } = props;
  const strings = useCallStrings();
  const me = useClient().userId;
  const { refresh } = useDevices();
  const [on, setOn] = useState({ mic: true, camera: kind === 'video' });
  const [chosen, setChosen] = useState<{ mic?: string; camera?: string }>({});
  const mic = useTrack('audio', on.mic, chosen.mic);
  const camera = useTrack('video', on.camera, chosen.camera);
  // The names of devices are known once one of them may be used.
  useEffect(refresh, [refresh, mic.state, camera.state]);
  const problem = [
    mic.state === 'denied' && strings.denied(strings.microphone),
    mic.state === 'missing' && strings.missing(strings.microphone),
    camera.state === 'denied' && strings.denied(strings.camera),
    camera.state === 'missing' && strings.missing(strings.camera),
  ].filter(Boolean);
  const asking = mic.state === 'asking' || camera.state === 'asking';
  const join = (): void =>
    onJoin({
      mic: mic.state === 'ready' && (chosen.mic ?? true),
      camera: camera.state === 'ready' && (chosen.camera ?? true),
    });
  return (
    <section
      ref={ref}
      className={cx('parley-preview-call', className)}
      aria-label={strings.preview}
      aria-busy={asking}
      {...useFrame()}
      {...rest}
    >
      <div className="parley-tile" data-self="">
        {camera.track ? (
          <Picture track={camera.track} />
        ) : me === null ? null : (
          <UserAvatar userId={me} size={112} />
        )}
        <span className="parley-tile-name">
          <Level track={mic.track} />
          {asking ? strings.asking : mic.track ? strings.you : strings.muted}
        </span>
      </div>
      <div className="parley-call-controls" role="toolbar" aria-label={strings.controls}>
        <Control
          icon={on.mic ? 'mic' : 'micOff'}
          label={strings.microphone}
          on={on.mic}
          onPress={() => setOn({ ...on, mic: !on.mic })}
        />
        {kind === 'video' ? (
          <Control
            icon={on.camera ? 'camera' : 'cameraOff'}
            label={strings.camera}
            on={on.camera}
            onPress={() => setOn({ ...on, camera: !on.camera })}
          />
        ) : null}
      </div>
      {problem.length > 0 ? (
        <p className="parley-problem" role="alert">
          {problem.join(' ')}
        </p>
      ) : null}
      <DevicePicker
        kinds={kind === 'video' ? ['mic', 'camera'] : ['mic']}
        chosen={{ mic: mic.track?.getSettings().deviceId, camera: camera.track?.getSettings().deviceId }}
        onChoose={(what, id) => setChosen({ ...chosen, [what]: id })}
      />
      <div className="parley-answers">
        {onCancel ? (
          <button type="button" onClick={onCancel}>
            {strings.cancel}
          </button>
        ) : null}
        <button type="button" data-kind="answer" disabled={asking} onClick={join}>
          {label ?? strings.join}
        </button>
      </div>
    </section>
  );
});

function Picture({ track }: { track: MediaStreamTrack }) {
  const video = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    const element = video.current!;
    element.srcObject = new MediaStream([track]);
    return () => void (element.srcObject = null);
  }, [track]);
  return <video ref={video} data-mirror="" autoPlay muted playsInline />;
}

const meterMs = 100;

/** How loud the microphone is, drawn without rendering. */
function Level({ track }: { track: MediaStreamTrack | null }) {
  const strings = useCallStrings();
  const meter = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (!track) return;
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    analyser.fftSize = 512;
    context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    const timer = setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, one) => sum + one * one, 0) / samples.length;
      // From -50 dB, which is a quiet room, to -10 dB.
      const level = Math.min(1, Math.max(0, (10 * Math.log10(power + 1e-9) + 50) / 40));
      meter.current?.style.setProperty('--parley-level', String(level));
      meter.current?.setAttribute('aria-valuenow', String(Math.round(level * 100)));
    }, meterMs);
    return () => {
      clearInterval(timer);
      void context.close();
    };
  }, [track]);
  return (
    <span
      ref={meter}
      className="parley-level"
      role="meter"
      aria-label={strings.level}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={0}
    />
  );
}
