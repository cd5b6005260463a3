import { randomInt } from 'node:crypto';

/**
 * The seed of a test that makes random choices. It is the same in every run, so that a failure is caused by a change
 * and not by chance. `TEST_SEED=N` sets another one, `TEST_SEED=random` (`npm test -- --explore`) a new one each
 * time. It is printed, and the runner shows it with a failure.
 */
export function seed(name: string): number {
  const given = process.env['TEST_SEED'] ?? '1';
  const value = given === 'random' ? randomInt(2 ** 31) : Number(given);
  if (!Number.isInteger(value))
    throw new Error(`TEST_SEED must be a whole number or "random"; it is ${given}`);
  console.log(`${name}: repeat with TEST_SEED=${value}`);
  return value;
}
