import { access } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { runBuilder } from '../src/builder.ts';

/** Ends while its builder works. */
const builder = new URL('./endless.ts', import.meta.url);
builder.searchParams.set('note', process.argv[2]!);
void runBuilder(builder);
while (
  await access(process.argv[2]!).then(
    () => false,
    () => true,
  )
)
  await delay(20);
process.exit(0);
