import { pooledRandom, systemClock } from '../platform/clock.ts';
import { checks } from '../platform/history/conformance.ts';
import { createRemoteHistories } from '../platform/history/remote.ts';
import type { Line } from './command.ts';

/** Needs no store, so that anybody who runs an endpoint can use it. */
export async function checkHistory({ args, env, json, logger }: Line): Promise<unknown> {
  const say = (text: string): void => void (json || process.stdout.write(`${text}\n`));
  const secret = env['HISTORY_SECRET'];
  const histories = createRemoteHistories({
    settings: { allowPrivate: true, dnsServers: [] },
    clock: systemClock,
    logger,
  });
  const id = `env_check${Buffer.from(pooledRandom()(6)).toString('hex')}`;
  const source = { url: args['url']!, ...(secret ? { secrets: [secret] } : {}) };
  const results: { check: string; ok: boolean; problem: string | null }[] = [];
  try {
    const history = await histories.open(source, { no: 0, id }, () => undefined);
    let count = 0;
    for (const check of checks)
      try {
        await check.run(history, (what) => `${what}_${++count}`);
        results.push({ check: check.name, ok: true, problem: null });
        say(`ok      ${check.name}`);
      } catch (error) {
        const problem = (error as Error).message;
        results.push({ check: check.name, ok: false, problem });
        say(`FAILED  ${check.name}\n        ${problem.replaceAll('\n', '\n        ')}`);
      }
    await history.close();
  } finally {
    await histories.close();
  }
  const failed = results.filter(({ ok }) => !ok).length;
  say(`${checks.length - failed} passed, ${failed} failed. It wrote as ${id}.`);
  if (failed > 0) process.exitCode = 1;
  return json ? { environmentId: id, passed: checks.length - failed, failed, checks: results } : undefined;
}
