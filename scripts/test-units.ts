// Test files that start nothing, in one process: each is a suite (scripts/test.ts).
import { describe } from 'node:test';

for (const file of JSON.parse(process.env['TEST_UNITS'] ?? '[]') as string[])
  describe(file, async () => {
    await import(file);
  });
