import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { LogEntry } from '@parley/protocol';
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
