import {
  forwardRef,
  memo,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import type { ComponentPropsWithoutRef, KeyboardEvent, ReactNode, UIEvent } from 'react';
import { useParley } from '../hooks/context.ts';
import { Path } from '../parts/icon.tsx';
import { cx, moveFocus, useFrame } from '../parts/tools.ts';
import { aboutOf, isQuiet, secondsOf, textOf, typeOf } from './frames.ts';
import { englishWire } from './strings.ts';
import type { WireStrings } from './strings.ts';
import { LastMessage } from './trail.tsx';
import type { Wire, WireFrame } from './wire.ts';

/** Lucide's icons (ISC). */
const icons = {
  out: 'M7 7h10v10M7 17 17 7',
  in: 'M17 7 7 17M17 17H7V7',
  none: 'M18 6 6 18M6 6l12 12',
  filter: 'M3 6h18M7 12h10M10 18h4',
  pause: 'M15 4h3v16h-3zM6 4h3v16H6z',
  play: 'M6 4l14 8-14 8z',
  clear:
    'M10 11v6M14 11v6M19 6v14a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2V6M3 6h18M8 6V4a2 2 0 0 1 2-2h4a2 2 0 0 1 2 2v2',
};
const nearEndPx = 40;
const none: readonly WireFrame[] = [];

export interface WirePanelProps extends Omit<ComponentPropsWithoutRef<'section'>, 'children'> {
  /** Of `createWire()`, whose `WebSocket` the client was given. */
  wire: Wire;
  /** Shows what waits in this conversation, and where the last message of this user is. */
  conversationId?: string | null;
  /** Shows what people wrote. Without it the panel has the shape of each frame, its ids and its numbers. */
  reveal?: boolean;
  /** Which frames are listed. */
  filter?: (frame: WireFrame) => boolean;
  /** What stands beside the type of a frame; gets what usually does. */
  format?: (frame: WireFrame, usual: string) => ReactNode;
  strings?: Partial<WireStrings>;
}

/** The frames of this person's socket as they go by. Arrows choose one, Enter opens it, C copies it. */
export const WirePanel = forwardRef<HTMLElement, WirePanelProps>(function WirePanel(props, ref) {
  const { wire, conversationId = null, reveal = false, filter, format, ...others } = props;
  const { strings: given, className, ...rest } = others;
  const { shortcuts, announcer } = useParley();
  const strings = useMemo(() => ({ ...englishWire, ...given }), [given]);
  const frames = useSyncExternalStore(wire.subscribe, wire.get, () => none);
  const paused = useSyncExternalStore(wire.subscribe, wire.isPaused, () => false);
  const [filtering, setFiltering] = useState(false);
  const [heartbeats, setHeartbeats] = useState(false);
  const [query, setQuery] = useState('');
  const [chosen, setChosen] = useState<number | null>(null);
  const [open, setOpen] = useState<number | null>(null);
  const toggle = useCallback((no: number) => setOpen((was) => (was === no ? null : no)), []);
  const list = useRef<HTMLDivElement>(null);
  const wanted = filtering ? query.trim().toLowerCase() : '';
  const shown = frames.filter(
    (frame) =>
      (heartbeats || typeOf(frame) !== 'hb') &&
      typeOf(frame).toLowerCase().includes(wanted) &&
      (!filter || filter(frame)),
  );
  const last = shown.at(-1)?.no;
  const tabStop = shown.some(({ no }) => no === chosen) ? chosen : last;
  // A reader who scrolled up stays there.
  const atEnd = useRef(true);
  useEffect(() => {
    if (atEnd.current) list.current!.scrollTop = list.current!.scrollHeight;
  }, [last]);
  const onScroll = ({ currentTarget: box }: UIEvent<HTMLDivElement>): void => {
    atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < nearEndPx;
  };
  const copy = (frame: WireFrame): void => {
    // A page without the focus may not copy.
    void navigator.clipboard?.writeText(textOf(frame, reveal)).then(
      () => announcer.say(strings.copied),
      () => undefined,
    );
  };
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>): void => {
    const rows = [...event.currentTarget.querySelectorAll<HTMLElement>('.parley-frame > button')];
    const at = rows.indexOf(event.target as HTMLElement);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (shortcuts && event.key.toLowerCase() === 'c') copy(shown[at]!);
    else if (!moveFocus(event, rows, false)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const button = (icon: keyof typeof icons, label: string, onPress: () => void, pressed?: boolean) => (
    <button
      type="button"
      className="parley-button"
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      onClick={onPress}
    >
      <Path d={icons[icon]} size={16} />
    </button>
  );
  return (
    <section
      ref={ref}
      aria-label={strings.wire}
      data-state={paused ? 'paused' : 'running'}
      {...useFrame()}
      {...rest}
      className={cx('parley-wire', className)}
    >
      <div className="parley-wire-head">
        <span data-way="out">{strings.ways.out}</span>
        <span data-way="in">{strings.ways.in}</span>
        <small>{strings.frameCount(shown.length, frames.length)}</small>
        {button('filter', strings.filter, () => setFiltering(!filtering), filtering)}
        {button(paused ? 'play' : 'pause', strings.pause, () => wire.pause(!paused), paused)}
        {button('clear', strings.clear, wire.clear)}
      </div>
      {filtering ? (
        <div className="parley-wire-filter">
          <label className="parley-search">
            <input
              type="search"
              value={query}
              placeholder={strings.filterBy}
              aria-label={strings.filterBy}
              autoComplete="off"
              onChange={(event) => setQuery(event.target.value)}
            />
          </label>
          <label>
            <input
              type="checkbox"
              checked={heartbeats}
              onChange={(event) => setHeartbeats(event.target.checked)}
            />
            {strings.heartbeats}
          </label>
        </div>
      ) : null}
      <div
        ref={list}
        className="parley-frames"
        role="log"
        aria-live="off"
        aria-label={strings.frames}
        onScroll={onScroll}
        onKeyDown={onKeyDown}
      >
        {shown.length === 0 ? <p className="parley-empty">{strings.nothing}</p> : null}
        <ol>
          {shown.map((frame) => (
            <Row
              key={frame.no}
              frame={frame}
              open={frame.no === open}
              reveal={reveal}
              tabStop={frame.no === tabStop}
              way={strings.ways[frame.way]}
              format={format}
              onOpen={toggle}
              onChoose={setChosen}
            />
          ))}
        </ol>
      </div>
      {conversationId === null ? null : <LastMessage id={conversationId} reveal={reveal} strings={strings} />}
    </section>
  );
});

interface RowProps {
  frame: WireFrame;
  open: boolean;
  reveal: boolean;
  tabStop: boolean;
  way: string;
  format: WirePanelProps['format'];
  onOpen: (no: number) => void;
  onChoose: (no: number) => void;
}
const Row = memo(function Row(props: RowProps) {
  const { frame, open, reveal, tabStop, way, format, onOpen, onChoose } = props;
  const { users } = useParley().client;
  // Names come later than frames; the row renders again only if its words change.
  const about = useSyncExternalStore(
    users.store.subscribe,
    () => aboutOf(frame, (id) => users.find(id)?.name || id, reveal),
    () => '',
  );
  return (
    <li className="parley-frame" data-way={frame.way} data-quiet={isQuiet(frame) || undefined}>
      <button
        type="button"
        aria-expanded={open}
        tabIndex={tabStop ? 0 : -1}
        onClick={() => onOpen(frame.no)}
        onFocus={() => onChoose(frame.no)}
      >
        <i>
          <Path d={icons[frame.way]} size={12} />
          <span className="parley-hidden">{way}</span>
        </i>
        <b>{typeOf(frame)}</b>
        <span>{format ? format(frame, about) : about}</span>
        <time>{secondsOf(frame.at)}</time>
      </button>
      {open ? <pre tabIndex={0}>{textOf(frame, reveal)}</pre> : null}
    </li>
  );
});
