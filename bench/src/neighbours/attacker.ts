import { serve } from './actor.ts';
import { rows } from './attacks/all.ts';
import { Deadline } from './kit.ts';
import type { Done, Strike, Target } from './kit.ts';

/** The process of the tenant that abuses the service. */

const strikes = new Map<string, Strike>();
const attackOf = (id: string) => rows.find((row) => row.id === id)!.attack;

const handlers = {
  async prepare({ id, target }: { id: string; target: Target }): Promise<void> {
    strikes.set(id, await attackOf(id)(target));
  },
  strike: ({ id, ms }: { id: string; ms: number }): Promise<Done> => strikes.get(id)!(new Deadline(ms)),
  /** Strikes as prepared, and prepares and strikes again where it is over early. What fails is told and tried again. */
  async persist({ id, target, ms }: { id: string; target: Target; ms: number }): Promise<Done> {
    const deadline = new Deadline(ms);
    const done: Done = { count: 0, text: '' };
    let rounds = 0;
    while (deadline.left > 1_000) {
      try {
        const strike = strikes.get(id) ?? (await attackOf(id)(target));
        strikes.delete(id);
        const { count, text } = await strike(new Deadline(deadline.left));
        done.count += count;
        done.text = text;
        rounds++;
      } catch (error) {
        done.text = error instanceof Error ? error.message.split('\n')[0]! : String(error);
      }
      await deadline.pause(1_000);
    }
    return { count: done.count, text: `${rounds} rounds, ${done.count} in all; the last: ${done.text}` };
  },
};
export type AttackerHandlers = typeof handlers;
serve(handlers);
