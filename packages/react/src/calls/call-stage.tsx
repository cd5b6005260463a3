import { forwardRef, useEffect, useRef, useState } from 'react';
import type { ComponentPropsWithoutRef, ComponentType, CSSProperties, KeyboardEvent } from 'react';
import type { CallHandle, CallParticipantView } from '@parley/client/calls';
import { useParley } from '../hooks/context.ts';
import { useConversationItem } from '../hooks/conversations.ts';
import { useName, useTitle } from '../hooks/people.ts';
import { cx, useFrame } from '../parts/tools.ts';
import { CallControls, useCallActions } from './controls.tsx';
import type { CallControlsProps } from './controls.tsx';
import { useCall, useCallStrings } from './hooks.ts';
import type { CallView } from './hooks.ts';
import { CallIcon } from './icons.tsx';
import { SelfView } from './self-view.tsx';
import type { SelfViewProps } from './self-view.tsx';
import { CallTile } from './tile.tsx';
import type { CallTileProps } from './tile.tsx';

export interface CallStageProps extends Omit<ComponentPropsWithoutRef<'section'>, 'children'> {
  call: CallHandle;
  /** `auto`: two people side by side, more as a grid; a shared screen or a pinned participant is large. `speaker`: the speaker is large. */
  layout?: 'auto' | 'pair' | 'grid' | 'speaker';
  slots?: {
    Tile?: ComponentType<CallTileProps>;
    Controls?: ComponentType<CallControlsProps> | null;
    Head?: ComponentType<CallHeadProps> | null;
    Self?: ComponentType<SelfViewProps>;
  };
  /** The side at which the controls are. */
  controlsAt?: 'bottom' | 'top' | 'start' | 'end';
  /** A small window in the corner of the page, with one picture: what goes on beside it can be used. */
  small?: boolean;
  /** Shows a button that makes the call small, or large again. */
  onSmall?: (small: boolean) => void;
  /** Called when the user closes the card of a call that has ended. */
  onClose?: () => void;
  /** Called when the user wants the same call again. */
  onAgain?: () => void;
}

/** A call: the others, oneself, a shared screen large, and the controls. */
export const CallStage = forwardRef<HTMLElement, CallStageProps>(function CallStage(props, ref) {
  const { call, layout = 'auto', slots = {}, onClose, onAgain, ...more } = props;
  const { controlsAt = 'bottom', small = false, onSmall, className, ...rest } = more;
  const { Tile = CallTile, Controls = CallControls, Head = CallHead, Self = SelfView } = slots;
  const { shortcuts, dir } = useParley();
  const strings = useCallStrings();
  const view = useCall(call)!;
  const title = useTitle(useConversationItem(view.conversationId));
  const [problem, setProblem] = useState<string | null>(null);
  const [pinned, setPinned] = useState<string | null>(null);
  const talking = useRef(false);
  const actions = useCallActions(call, setProblem);
  useJoins(view);
  const frame = useFrame();

  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    rest.onKeyDown?.(event);
    const { tagName } = event.target as HTMLElement;
    if (!shortcuts || event.ctrlKey || event.metaKey || event.altKey || /INPUT|TEXTAREA|SELECT/.test(tagName))
      return;
    if (event.key === ' ' && tagName !== 'BUTTON') {
      event.preventDefault();
      if (event.repeat || actions.mic) return;
      talking.current = true;
      return actions.toggleMic();
    }
    const key = event.key.toLowerCase();
    const act = { m: actions.toggleMic, v: actions.toggleCamera, s: actions.toggleScreen, l: actions.leave }[
      key
    ];
    act?.();
  };

  /** While the user holds Space, the microphone is on. */
  const onKeyUp = (event: KeyboardEvent<HTMLElement>): void => {
    rest.onKeyUp?.(event);
    if (event.key !== ' ' || !talking.current) return;
    talking.current = false;
    actions.run(call.mute());
  };

  const there = view.participants.filter((p) => p.inCall || p.isLocal);
  const others = there.filter((p) => !p.isLocal);
  const screens = there.filter((p) => p.screenTrack !== null || p.screenUnsupported);
  const pair = layout === 'pair' || (layout === 'auto' && others.length <= 1);
  const speaker = others.find((p) => p.userId === view.activeSpeaker) ?? others[0];
  const chosen = there.find((p) => p.userId === pinned) ?? (layout === 'speaker' ? speaker : undefined);
  // A small window has one picture: of the speaker, or else of another participant.
  const large = screens[0] ?? (small ? (speaker ?? there[0]) : pair ? undefined : chosen);
  const shape = screens.length > 0 ? 'screen' : large ? 'speaker' : pair ? 'pair' : 'grid';
  const pin = (p: CallParticipantView) =>
    pair ? null : <Pin participant={p} pinned={p.userId === pinned} onPin={setPinned} />;
  const strip = [...others, ...there.filter((p) => p.isLocal)].filter(
    (p) => shape !== 'speaker' || p !== large,
  );
  const columns = Math.ceil(Math.sqrt(there.length));
  const ended = view.state === 'ended';
  return (
    <section
      ref={ref}
      aria-label={strings.callWith(title)}
      {...frame}
      {...(dir ? { dir } : {})}
      {...rest}
      className={cx('parley-call', className)}
      data-state={view.state}
      data-layout={shape}
      data-controls={controlsAt}
      data-small={small || undefined}
      tabIndex={-1}
      onKeyDown={onKeyDown}
      onKeyUp={onKeyUp}
    >
      {Head ? <Head view={view} title={title} small={small} onSmall={ended ? undefined : onSmall} /> : null}
      {ended ? (
        <div className="parley-call-over" role="status">
          <p>{(view.endedHere && strings.endedBecause[view.endedHere]) ?? strings.ended}</p>
          {onAgain ? (
            <button type="button" className="parley-control" data-off="" onClick={onAgain}>
              {strings.again}
            </button>
          ) : null}
          {onClose ? (
            <button type="button" className="parley-control" onClick={onClose}>
              {strings.close}
            </button>
          ) : null}
        </div>
      ) : (
        <div className="parley-tiles" style={{ '--parley-columns': columns } as CSSProperties}>
          {large ? (
            <ul className="parley-screens">
              <Tile
                key={large.userId}
                call={call}
                participant={large}
                what={shape === 'screen' ? 'screen' : 'video'}
                pinned={shape === 'speaker' && large.userId === pinned}
              >
                {shape === 'screen' ? null : pin(large)}
              </Tile>
            </ul>
          ) : null}
          <ul className="parley-people">
            {strip.map((p) =>
              shape === 'pair' && p.isLocal && others.length > 0 ? (
                <Self key={p.userId} call={call} participant={p} Tile={Tile} network={view.network.level} />
              ) : (
                <Tile
                  key={p.userId}
                  call={call}
                  participant={p}
                  network={p.isLocal ? view.network.level : undefined}
                >
                  {pin(p)}
                </Tile>
              ),
            )}
          </ul>
        </div>
      )}
      {problem === null ? null : (
        <p className="parley-problem" role="alert">
          {problem}
        </p>
      )}
      {Controls && !ended ? <Controls call={call} onProblem={setProblem} /> : null}
    </section>
  );
});

interface PinProps {
  participant: CallParticipantView;
  pinned: boolean;
  onPin: (userId: string | null) => void;
}
function Pin({ participant: { userId, isLocal }, pinned, onPin }: PinProps) {
  const strings = useCallStrings();
  const name = useName(userId);
  const label = strings.pin(isLocal ? strings.you : name);
  return (
    <button
      type="button"
      className="parley-tile-action"
      aria-pressed={pinned}
      aria-label={label}
      title={label}
      onClick={() => onPin(pinned ? null : userId)}
    >
      <CallIcon name="pin" size={16} />
    </button>
  );
}

export interface CallHeadProps {
  view: CallView;
  title: string;
  small?: boolean;
  /** Makes the call small, or large again. */
  onSmall?: ((small: boolean) => void) | undefined;
}

/** Name, time and network. */
export function CallHead({ view, title, small = false, onSmall }: CallHeadProps) {
  const strings = useCallStrings();
  const { state, network } = view;
  const alone = !view.participants.some((p) => p.inCall && !p.isLocal);
  return (
    <header className="parley-call-head">
      <h2>
        <bdi>{title}</bdi>
      </h2>
      <span>
        {state === 'reconnecting'
          ? strings.reconnecting
          : state === 'connecting'
            ? strings.connecting
            : state === 'connected' && alone && view.call.status === 'ringing'
              ? strings.ringing
              : null}
        {state === 'connected' && view.call.answeredAt !== null ? (
          <Elapsed since={view.call.answeredAt} />
        ) : null}
      </span>
      {state === 'ended' ? null : <NetworkQuality level={network.level} />}
      {onSmall ? (
        <button
          type="button"
          className="parley-button"
          aria-label={small ? strings.makeLarge : strings.makeSmall}
          title={small ? strings.makeLarge : strings.makeSmall}
          onClick={() => onSmall(!small)}
        >
          <CallIcon name={small ? 'large' : 'small'} size={18} />
        </button>
      ) : null}
    </header>
  );
}

export interface NetworkQualityProps {
  /** 1 to 5, of the call's `network`. */
  level: number;
  /** From this level on it is good, or weak. */
  good?: number;
  weak?: number;
}
/** Three bars, and the word beside them. */
export function NetworkQuality({ level, good = 4, weak = 2 }: NetworkQualityProps) {
  const strings = useCallStrings();
  const quality = level >= good ? 'good' : level >= weak ? 'weak' : 'lost';
  return (
    <span className="parley-signal" data-quality={quality}>
      <span aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      {strings[quality]}
    </span>
  );
}

function Elapsed({ since }: { since: string }) {
  const { now } = useParley();
  const [at, setAt] = useState(now);
  useEffect(() => {
    const timer = setInterval(() => setAt(now()), 1_000);
    return () => clearInterval(timer);
  }, [now]);
  const seconds = Math.max(0, Math.floor((at - Date.parse(since)) / 1_000));
  const two = (n: number): string => String(n).padStart(2, '0');
  const hours = Math.floor(seconds / 3_600);
  return (
    <bdi dir="ltr" className="parley-elapsed">
      {hours > 0 ? `${hours}:` : ''}
      {two(Math.floor(seconds / 60) % 60)}:{two(seconds % 60)}
    </bdi>
  );
}

/** Announces politely who joins and leaves, but not who speaks. */
function useJoins(view: CallView): void {
  const { announcer, client } = useParley();
  const strings = useCallStrings();
  const before = useRef<ReadonlySet<string> | null>(null);
  const there = view.participants.filter((p) => p.inCall && !p.isLocal).map((p) => p.userId);
  const list = there.join('\n');
  useEffect(() => {
    const now = new Set(list === '' ? [] : list.split('\n'));
    const was = before.current;
    before.current = now;
    if (!was) return;
    const nameOf = (id: string): string => client.users.find(id)?.name || id;
    for (const id of now) if (!was.has(id)) announcer.say(strings.joined(nameOf(id)));
    for (const id of was) if (!now.has(id)) announcer.say(strings.left(nameOf(id)));
  }, [list, announcer, client, strings]);
}
