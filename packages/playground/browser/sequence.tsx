import { passagesOf } from './frames.ts';
import { firstName } from './people.ts';
import type { Session } from './session.ts';
import { useValue } from './store.ts';

const width = 1_400;
const start = 130;
const step = 200;
const top = 14;
const middle = 42;
const bottom = 70;

interface SequenceProps {
  conversationId: string;
  a: Session;
  b: Session;
}

/** Messages between two people, as the service numbered them. */
export function Sequence({ conversationId, a, b }: SequenceProps) {
  const passages = passagesOf(
    conversationId,
    { id: a.userId, frames: useValue(a.network.frames) },
    { id: b.userId, frames: useValue(b.network.frames) },
  );
  const [first, second] = [firstName(a.userId), firstName(b.userId)];
  const said = passages.map(({ from, seq, heard }) => {
    const [by, to] = from === 'a' ? [first, second] : [second, first];
    return seq === null
      ? `${by}’s next message waits`
      : `${seq} by ${by}, ${heard ? 'heard by' : 'not yet with'} ${to}`;
  });
  return (
    <section className="demo-sequence" aria-label="What the server saw">
      <h2>What the server saw</h2>
      <p>every message passes the middle line once: committed, numbered, then handed on</p>
      <svg
        viewBox={`0 0 ${width} 84`}
        role="img"
        aria-label={said.length > 0 ? said.join('. ') : 'Nothing was said yet.'}
      >
        <path className="demo-way" d={`M80 ${top}H${width}M80 ${bottom}H${width}`} />
        <path className="demo-server" d={`M80 ${middle}H${width}`} />
        <text x="0" y={top + 4}>
          {first}
        </text>
        <text x="0" y={middle + 4} className="demo-name">
          Parley
        </text>
        <text x="0" y={bottom + 4}>
          {second}
        </text>
        {passages.map(({ key, from, seq, heard }, i) => {
          const x = start + i * step;
          const [y0, y1] = from === 'a' ? [top, bottom] : [bottom, top];
          return (
            <g key={key} data-from={from} data-seq={seq ?? 'waiting'} data-heard={heard || undefined}>
              {seq === null ? null : <path d={`M${x} ${y0}L${x + 22} ${middle}L${x + 44} ${y1}`} />}
              <circle cx={x} cy={y0} r="4.5" />
              {seq === null ? (
                <text x={x + 14} y={y0 + 4}>
                  waits
                </text>
              ) : (
                <>
                  <circle className="demo-numbered" cx={x + 22} cy={middle} r="5.5" />
                  <circle className="demo-heard" cx={x + 44} cy={y1} r="4.5" />
                  <text x={x + 36} y={middle - 8} className="demo-seq">
                    seq {seq}
                  </text>
                </>
              )}
            </g>
          );
        })}
      </svg>
    </section>
  );
}
