import { forwardRef, useSyncExternalStore } from 'react';
import type { ComponentPropsWithoutRef, CSSProperties } from 'react';
import { cx } from '../parts/tools.ts';
import { passagesOf } from './passages.ts';
import { englishWire } from './strings.ts';
import type { WireStrings } from './strings.ts';
import type { Wire, WireFrame } from './wire.ts';

export interface SequencePerson {
  userId: string;
  name: string;
  wire: Wire;
  /** A CSS colour; said and heard unless given. */
  color?: string;
}

export interface SequenceViewProps extends Omit<ComponentPropsWithoutRef<'section'>, 'children'> {
  conversationId: string;
  /** Two to four, each with a client in this page. */
  people: readonly SequencePerson[];
  strings?: Partial<WireStrings>;
}

const width = 1_400;
const start = 130;
const step = 200;
const slant = 22;
const edge = 14;
const lane = 28;
const maxPeople = 4;
const colors = ['say', 'hear', 'series-3', 'series-4'];

/** Where the line of a person is: half of them above the service, half below. */
const laneOf = (index: number, people: number): number =>
  edge + lane * (index < Math.ceil(people / 2) ? index : index + 1);

function useFrames(people: readonly SequencePerson[]): readonly (readonly WireFrame[])[] {
  const wires = people.map(({ wire }) => wire);
  const subscribe = (changed: () => void): (() => void) => {
    const offs = wires.map((wire) => wire.subscribe(changed));
    return () => offs.forEach((off) => off());
  };
  // The number of the newest frame of each stands for all of them: what is kept changes with it.
  useSyncExternalStore(
    subscribe,
    () => wires.map((wire) => wire.get().at(-1)?.no ?? 0).join(' '),
    () => '',
  );
  return wires.map((wire) => wire.get());
}

/** Messages between two to four people, as the service numbered them. */
export const SequenceView = forwardRef<HTMLElement, SequenceViewProps>(function SequenceView(props, ref) {
  const { conversationId, people: given, strings: own, className, ...rest } = props;
  const strings = { ...englishWire, ...own };
  const people = given.slice(0, maxPeople);
  const frames = useFrames(people);
  const passages = passagesOf(
    conversationId,
    people.map(({ userId }, i) => ({ userId, frames: frames[i]! })),
  );
  const names = (indexes: readonly number[]): string[] => indexes.map((i) => people[i]!.name);
  const others = (from: number): number[] => people.flatMap((_, i) => (i === from ? [] : [i]));
  const said = passages.map(({ from, seq, heard }) =>
    strings.passage(
      seq,
      people[from]!.name,
      names(heard),
      names(others(from).filter((i) => !heard.includes(i))),
    ),
  );
  const lanes = people.map((_, i) => laneOf(i, people.length));
  const middle = edge + lane * Math.ceil(people.length / 2);
  const height = edge * 2 + lane * people.length;
  return (
    <section ref={ref} aria-label={strings.sequence} {...rest} className={cx('parley-sequence', className)}>
      <h2>{strings.sequence}</h2>
      <p>{strings.sequenceAbout}</p>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        width={width}
        height={height}
        role="img"
        aria-label={said.length > 0 ? said.join('. ') : strings.nothingSaid}
      >
        <path className="parley-lanes" d={lanes.map((y) => `M80 ${y}H${width}`).join('')} />
        <path className="parley-service" d={`M80 ${middle}H${width}`} />
        <text x="0" y={middle + 4} className="parley-service-name">
          {strings.service}
        </text>
        {people.map(({ userId, name }, i) => (
          <text key={userId} x="0" y={lanes[i]! + 4}>
            {name}
          </text>
        ))}
        {passages.map(({ key, from, seq, heard }, i) => {
          const x = start + i * step;
          const y = lanes[from]!;
          const color = people[from]!.color ?? `var(--parley-${colors[from]!})`;
          return (
            <g
              key={key}
              style={{ '--parley-side': color } as CSSProperties}
              data-from={from}
              data-seq={seq ?? 'waiting'}
              data-heard={heard.length === people.length - 1 || undefined}
            >
              <circle cx={x} cy={y} r="4.5" />
              {seq === null ? (
                <text x={x + 14} y={y + 4}>
                  {strings.waits}
                </text>
              ) : (
                <>
                  <path d={`M${x} ${y}L${x + slant} ${middle}`} />
                  {others(from).map((to) => (
                    <path key={to} d={`M${x + slant} ${middle}L${x + 2 * slant} ${lanes[to]!}`} />
                  ))}
                  <circle className="parley-numbered" cx={x + slant} cy={middle} r="5.5" />
                  {others(from).map((to) => (
                    <circle
                      key={to}
                      className="parley-heard"
                      data-on={heard.includes(to) || undefined}
                      cx={x + 2 * slant}
                      cy={lanes[to]!}
                      r="4.5"
                    />
                  ))}
                  <text x={x + slant + 14} y={middle - 8} className="parley-seq">
                    {strings.numbered(seq)}
                  </text>
                </>
              )}
            </g>
          );
        })}
      </svg>
      <details>
        <summary>{strings.asTable}</summary>
        <table>
          <thead>
            <tr>
              {strings.columns.map((column) => (
                <th key={column}>{column}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {passages.map(({ key, from, seq, heard }) => (
              <tr key={key}>
                <td>{seq ?? strings.waits}</td>
                <td>{people[from]!.name}</td>
                <td>{names(heard).join(', ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </section>
  );
});
