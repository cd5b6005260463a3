// docs/operations/command-line.md, made from the commands' declarations: npm run generate writes it, npm run check checks it
// (--check).
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { commandList } from '../packages/server/src/cli/commands/index.ts';
import { document } from '../packages/server/src/cli/help.ts';

const file = new URL('../docs/operations/command-line.md', import.meta.url);
const wanted = document(commandList);

function current(): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

if (current() !== wanted) {
  if (process.argv.includes('--check')) {
    console.error('stale: docs/operations/command-line.md (run npm run generate)');
    process.exitCode = 1;
  } else {
    mkdirSync(new URL('.', file), { recursive: true });
    writeFileSync(file, wanted);
    console.log('wrote docs/operations/command-line.md');
  }
}
