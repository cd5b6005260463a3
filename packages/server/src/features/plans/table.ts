import { readFile } from 'node:fs/promises';
import { planNames, plans as defaults, Type } from '@parley/protocol';
import type { Plan, PlanName } from '@parley/protocol';
import type { Logger } from '../../platform/logging.ts';
import { validator } from '../../platform/validation.ts';
import { createPeriodic } from '../../platform/flow/periodic.ts';

/**
 * What the plans allow: the table of the protocol package, overridden by the file that CHAT_PLANS names. The file is
 * read again every few seconds, so a change needs no restart. While the file cannot be read, its last content stays
 * in force.
 */

const Limit = Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]);
const closed = { additionalProperties: false };
const Change = Type.Object(
  {
    mauLimit: Type.Optional(Limit),
    connectionLimit: Type.Optional(Limit),
    secretKey: Type.Optional(
      Type.Object(
        { perSecond: Type.Number({ exclusiveMinimum: 0 }), burst: Type.Number({ minimum: 1 }) },
        closed,
      ),
    ),
    callParticipants: Type.Optional(Type.Integer({ minimum: 1 })),
    mediaBytes: Type.Optional(Limit),
  },
  closed,
);
const Changes = Type.Object(
  Object.fromEntries(planNames.map((name) => [name, Type.Optional(Change)])),
  closed,
);
const fits = validator(Type.Object({ CHAT_PLANS: Changes }));

export type Plans = Record<PlanName, Plan>;

export function parsePlans(text: string): Plans {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('CHAT_PLANS: the file is not JSON; it looks like { "free": { "mauLimit": 2000 } }.');
  }
  const problem = fits({ CHAT_PLANS: value });
  if (problem) throw new Error(problem.message);
  const changes = value as Partial<Record<PlanName, Partial<Plan>>>;
  return Object.fromEntries(
    planNames.map((name) => [name, { ...defaults[name], ...changes[name] }]),
  ) as Plans;
}

const readMs = 2_000;

/** @param path the file, or undefined for the table of the protocol package alone. */
export function createPlanTable(path: string | undefined, logger: Logger, given: Plans = defaults) {
  const plans = { ...given };
  let known: string | undefined;
  async function read(file: string): Promise<void> {
    const text = await readFile(file, 'utf8');
    if (text === known) return;
    Object.assign(plans, parsePlans(text));
    if (known !== undefined) logger.info({ file }, 'the plans were changed');
    known = text;
  }
  const periodic = createPeriodic(readMs, logger, 'reading the plans', () => read(path!));
  return {
    /** The object stays the same; its entries change. */
    plans,
    start: async () => {
      if (path === undefined) return;
      await read(path);
      periodic.start();
    },
    stop: () => periodic.stop(),
  };
}
