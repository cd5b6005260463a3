import { valuesOf } from '../results.ts';
import type { Row } from '../results.ts';
import { format, formatSpread, median, ratios, spread } from '../stats.ts';
import type { Spread } from '../stats.ts';

/** The targets on a 2-core machine with everything on it, held against what was measured. */

export interface Judged {
  what: string;
  target: string;
  measured: string;
  /** null: it was not measured. */
  met: boolean | null;
  /** By how much not, as a share of the target. */
  short: number;
}

interface Bound {
  what: string;
  sense: 'at least' | 'at most';
  bound: number;
  unit: string;
  value: Spread;
}

function judge({ what, sense, bound, unit, value }: Bound): Judged {
  const known = !Number.isNaN(value.median);
  const met = sense === 'at least' ? value.median >= bound : value.median <= bound;
  return {
    what,
    target: `${sense} ${format(bound)}${unit}`,
    measured: known ? `${formatSpread(value)}${unit}` : 'not measured',
    met: known ? met : null,
    short: known && !met ? Math.abs(value.median / bound - 1) : 0,
  };
}

export function judgeTargets(rows: readonly Row[]): Judged[] {
  const of = (workload: string, server: string, metric: string) => valuesOf(rows, workload, server, metric);
  const against = (workload: string, metric: string, peer: string) =>
    ratios(of(workload, 'parley', metric), of(workload, peer, metric));
  const pages = rows.filter((r) => /CPU per page$/.test(r.metric));
  const ends = (workload: string, end: string): Spread => {
    const own = pages.filter((r) => r.workload === workload && r.metric.includes(end));
    return ratios(own.at(-1)?.values ?? [], own[0]?.values ?? []);
  };
  const idle = rows
    .filter((r) => r.workload === 'idle' && r.server === 'parley' && /^\d+ sockets$/.test(r.metric))
    .at(-1);
  const storm = rows.find((r) => r.workload === 'storm' && r.server === 'parley' && /^all /.test(r.metric));
  return [
    judge({
      what: 'acknowledged messages/s at the maximum, to Socket.IO with group commit',
      sense: 'at least',
      bound: 1.8,
      unit: ' ×',
      value: against('max', 'acknowledged', 'socketio-group'),
    }),
    judge({
      what: 'the same, to ejabberd',
      sense: 'at least',
      bound: 9,
      unit: ' ×',
      value: against('max', 'acknowledged', 'ejabberd'),
    }),
    judge({
      what: 'the same, to the bare in-memory `ws` server',
      sense: 'at least',
      bound: 1.5,
      unit: ' ×',
      value: against('max', 'acknowledged', 'ws'),
    }),
    judge({
      what: 'CPU per delivery at the maximum, to the bare `ws` server at its own',
      sense: 'at most',
      bound: 1,
      unit: ' ×',
      value: against('max', 'CPU per delivery', 'ws'),
    }),
    judge({
      what: 'acknowledged messages/s at the maximum, to Centrifugo with its history in memory',
      sense: 'at least',
      bound: 1,
      unit: ' ×',
      value: against('max', 'acknowledged', 'centrifugo'),
    }),
    judge({
      what: 'CPU per delivery at the maximum, to the same at its own',
      sense: 'at most',
      bound: 1,
      unit: ' ×',
      value: against('max', 'CPU per delivery', 'centrifugo'),
    }),
    judge({
      what: 'acknowledged messages/s at the maximum, to Centrifugo with its history in Redis',
      sense: 'at least',
      bound: 1,
      unit: ' ×',
      value: against('max', 'acknowledged', 'centrifugo-redis'),
    }),
    judge({
      what: 'CPU per delivery at the maximum, to the same at its own (with Redis)',
      sense: 'at most',
      bound: 1,
      unit: ' ×',
      value: against('max', 'CPU per delivery', 'centrifugo-redis'),
    }),
    judge({
      what: 'send-to-ack p50, send workload',
      sense: 'at most',
      bound: 15,
      unit: ' ms',
      value: spread(of('send', 'parley', 'ack p50')),
    }),
    judge({
      what: 'the same, to Socket.IO with group commit',
      sense: 'at most',
      bound: 1,
      unit: ' ×',
      value: against('send', 'ack p50', 'socketio-group'),
    }),
    judge({
      what: 'send-to-ack p99, send workload, to Socket.IO with group commit',
      sense: 'at most',
      bound: 1,
      unit: ' ×',
      value: against('send', 'ack p99', 'socketio-group'),
    }),
    judge({
      what: 'send-to-ack p50, direct conversations',
      sense: 'at most',
      bound: 4,
      unit: ' ms',
      value: spread(of('direct', 'parley', 'ack p50')),
    }),
    judge({
      what: 'CPU per delivery, big rooms, to a bare loop that writes coalesced frames',
      sense: 'at most',
      bound: 1.3,
      unit: ' ×',
      value: against('bigrooms', 'CPU per delivery', 'raw'),
    }),
    judge({
      what: 'send-to-ack p50 at 200 messages/s',
      sense: 'at most',
      bound: 1.5,
      unit: ' ms',
      value: spread(of('light', 'parley', 'ack p50')),
    }),
    judge({
      what: 'send-to-ack p99 at 200 messages/s, to the bare `ws` server',
      sense: 'at most',
      bound: 3,
      unit: ' ×',
      value: against('light', 'ack p99', 'ws'),
    }),
    judge({
      what: 'send-to-ack p99 at half of the maximum',
      sense: 'at most',
      bound: 50,
      unit: ' ms',
      value: spread(of('half', 'parley', 'ack p99')),
    }),
    judge({
      what: `RSS per idle authenticated socket (${idle?.metric ?? '10000 sockets'})`,
      sense: 'at most',
      bound: 12,
      unit: ' KB',
      value: spread(idle?.values ?? []),
    }),
    judge({
      what: 'logins/s (`auth`, `hello`, first `sync`)',
      sense: 'at least',
      bound: 2_500,
      unit: '/s',
      value: spread(of('storm', 'parley', 'logins, 100 at a time')),
    }),
    judge({
      what: `reconnect storm, ${storm?.metric ?? 'all at once'}: failed`,
      sense: 'at most',
      bound: 0,
      unit: '',
      value: spread(of('storm', 'parley', 'failed')),
    }),
    judge({
      what: 'reconnect storm: RSS afterwards to before',
      sense: 'at most',
      bound: 1.1,
      unit: ' ×',
      value: spread(of('storm', 'parley', 'RSS afterwards to before')),
    }),
    judge({
      what: 'history page at the head, longest conversation to shortest',
      sense: 'at most',
      bound: 1.5,
      unit: ' ×',
      value: ends('history', 'head'),
    }),
    judge({
      what: 'history page deep inside, longest conversation to shortest',
      sense: 'at most',
      bound: 1.5,
      unit: ' ×',
      value: ends('history', 'deep'),
    }),
    judge({
      what: 'conversation list, longest to shortest, same page',
      sense: 'at most',
      bound: 1.5,
      unit: ' ×',
      value: ends('list', 'conversations'),
    }),
    judge({
      what: 'cost per message, store a hundred times larger',
      sense: 'at most',
      bound: 1.5,
      unit: ' ×',
      value: ratios(
        of('growth ×100', 'parley', 'CPU per message'),
        of('growth ×1', 'parley', 'CPU per message'),
      ),
    }),
    judge({
      what: 'start to ready (not the first start)',
      sense: 'at most',
      bound: 3,
      unit: ' s',
      value: spread(of('start', 'parley', 'start to ready')),
    }),
    judge({
      what: 'expired rows that one worker removes, those that go row by row',
      sense: 'at least',
      bound: 14_000,
      unit: '/s',
      value: spread(of('retention', 'parley', 'events and idempotency keys, row by row')),
    }),
    judge({
      what: 'kept for a time, after 30 days to after 10',
      sense: 'at most',
      bound: 1.1,
      unit: ' ×',
      value: ratios(
        of('retention', 'parley', 'kept after day 30'),
        of('retention', 'parley', 'kept after day 10'),
      ),
    }),
    judge({
      what: 'cost per message, after 30 days to after the first',
      sense: 'at most',
      bound: 1.1,
      unit: ' ×',
      value: ratios(
        of('retention', 'parley', 'CPU per message after day 30'),
        of('retention', 'parley', 'CPU per message after day 1'),
      ),
    }),
    judge({
      what: 'soak: RSS at the end to that after a sixth of the time',
      sense: 'at most',
      bound: 1.1,
      unit: ' ×',
      value: spread(of('soak', 'parley', 'RSS at the end to that after a sixth')),
    }),
    judge({
      what: 'ten reconnect storms: RSS after the last to that after the first',
      sense: 'at most',
      bound: 1.1,
      unit: ' ×',
      value: spread(of('soak', 'parley', 'storms: RSS after the last to that after the first')),
    }),
  ];
}

/** What part of the bare database's rows per second the service commits as messages. */
export function storeShares(rows: readonly Row[]): string[] {
  const best = Math.max(
    ...rows.filter((r) => r.workload === 'store').map((r) => median(r.values)),
    Number.NEGATIVE_INFINITY,
  );
  const share = (name: string, values: number[]): string[] =>
    values.length === 0 || !Number.isFinite(best)
      ? []
      : [
          `${name}: ${format(median(values))} messages/s, ${format((100 * median(values)) / best)} % of the rows that one bare client brings in with its best batch (${format(best)}/s)`,
        ];
  return [
    ...share('Over the socket, at the maximum', valuesOf(rows, 'max', 'parley', 'acknowledged')),
    ...share('Over REST', valuesOf(rows, 'rest', 'parley', 'messages')),
  ];
}
