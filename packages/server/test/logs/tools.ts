import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { LogEntry, TraceLine } from '@parley/protocol';
import type { Dashboard } from '../accounts/dashboard.ts';
import type { Api } from '../support/api.ts';

/** The log is written in batches: looks until the rows are there. */
export async function logged(
  dashboard: Api,
  query: string,
  fits: (rows: LogEntry[]) => boolean = (rows) => rows.length > 0,
): Promise<LogEntry[]> {
  for (;;) {
    const { status, body } = await dashboard('GET', `/v1/logs?limit=200&${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    const rows = (body as { data: LogEntry[] }).data;
    if (fits(rows)) return rows;
    await delay(50);
  }
}

/** A trace as it comes in: its lines, and the next one that fits. */
export interface Followed {
  status: number;
  lines: TraceLine[];
  next(fits: (line: TraceLine) => boolean): Promise<TraceLine>;
  /** Resolves when the service ended it. */
  ended: Promise<void>;
  stop(): void;
}

export async function follow(
  dashboard: Dashboard,
  url: string,
  env: string,
  query: string,
): Promise<Followed> {
  const abort = new AbortController();
  const response = await fetch(`${url}/v1/live/trace?${query}`, {
    headers: { cookie: `parley_session=${dashboard.cookie}`, 'chat-env': env },
    signal: abort.signal,
  });
  const lines: TraceLine[] = [];
  let wake = (): void => undefined;
  let over = false;
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of response.body!) {
      const parts = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n');
      rest = parts.pop()!;
      lines.push(...parts.map((part) => JSON.parse(part) as TraceLine));
      wake();
    }
  };
  const ended = read()
    .catch(() => undefined)
    .finally(() => {
      over = true;
      wake();
    });
  return {
    status: response.status,
    lines,
    ended,
    stop: () => abort.abort(),
    async next(fits) {
      for (;;) {
        const found = lines.find(fits);
        if (found) return found;
        assert.ok(!over, `the trace ended: ${JSON.stringify(lines)}`);
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}
