import { AssertionError } from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../../../../client/test/chaos/random.ts';
import type { World } from '../../../../client/test/chaos/world.ts';
import { createDashboard, owner } from '../../accounts/dashboard.ts';
import type { Dashboard } from '../../accounts/dashboard.ts';
import { createApi } from '../../support/api.ts';
import type { Answer } from '../../support/api.ts';

/** Speaks to whichever node runs, and again until one answers. */

/** How long one request may take, and how long all of them that are one question. */
const answerMs = 60_000;
const patienceMs = 300_000;

/** `unsure`: an earlier request of the same question may have been carried out without an answer. */
export type Asked = Answer & { unsure: boolean };

/** Returns null if no node gave an answer that is one within `patience` milliseconds. */
export type Ask = (
  method: string,
  path: string,
  body?: unknown,
  patience?: number,
) => Promise<Asked | { status: null; unsure: boolean }>;

/** As the owner in the dashboard of one environment. */
export type Admin = (method: string, path: string, body?: unknown) => Promise<Answer>;

/** What a request comes to: a broken connection is null, an answer of the wrong form is an error. */
async function attempt(request: () => Promise<Answer>): Promise<Answer | null> {
  const late = new AbortController();
  try {
    return await Promise.race([request(), delay(answerMs, null, { signal: late.signal })]);
  } catch (error) {
    if (error instanceof AssertionError) throw error;
    return null;
  } finally {
    late.abort();
  }
}

export function asks(world: World, secretKey: string, random: Random): Ask {
  return async (method, path, body, patience = patienceMs) => {
    let unsure = false;
    for (const deadline = Date.now() + patience; ;) {
      const ports = world.ports();
      const answer =
        ports.length === 0
          ? null
          : await attempt(() =>
              createApi(`http://127.0.0.1:${random.pick(ports)}`, secretKey)(method, path, body),
            );
      if (answer && answer.status !== 429 && answer.status < 500) return { ...answer, unsure };
      // Nothing was done if the history was not there to look into.
      if (answer?.status !== 429 && answer?.body.error?.code !== 'history_unavailable') unsure = true;
      if (Date.now() > deadline) return { status: null, unsure };
      await delay(50 + random.int(150));
    }
  };
}

export function administers(world: World, environment: string, random: Random): Admin {
  const dashboards = new Map<number, Dashboard>();
  return async (method, path, body) => {
    for (const deadline = Date.now() + patienceMs; ;) {
      const port = world.ports().length > 0 ? random.pick(world.ports()) : null;
      const dashboard = port && (dashboards.get(port) ?? createDashboard(`http://127.0.0.1:${port}`));
      if (dashboard) {
        dashboards.set(port, dashboard);
        const answer = await attempt(() => dashboard.in(environment)(method, path, body));
        const isSignedOut = answer?.status === 401 || answer?.body.error?.code === 'reauth_required';
        if (isSignedOut) await attempt(() => dashboard.api('POST', '/v1/session', owner));
        else if (answer && answer.status !== 429 && answer.status < 500) return answer;
      }
      if (Date.now() > deadline) throw new Error(`${method} ${path} got no answer`);
      await delay(100 + random.int(200));
    }
  };
}
