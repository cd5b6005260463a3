import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

/** The table of docs/accounts.md: each requirement has a test that exists, or a reason. */

const root = new URL('../../../../', import.meta.url);

/** OWASP ASVS 5.0, levels 1 and 2: how many requirements of each section, which are numbered from 1 and ordered by level. */
const sections: Record<string, number> = {
  ...{ '6.1': 3, '6.2': 12, '6.3': 4, '6.4': 4, '6.5': 5, '6.6': 3, '6.8': 4 },
  ...{ '7.1': 3, '7.2': 4, '7.3': 2, '7.4': 5, '7.5': 2, '7.6': 2 },
  ...{ '8.1': 2, '8.2': 3, '8.3': 1, '8.4': 1 },
};

/** "3.3.1, 3.5.1 to 3.5.3" as single numbers. */
const numbers = (text: string): string[] =>
  text.split(', ').flatMap((part) => {
    const [first, last] = part.split(' to ') as [string, string?];
    if (last === undefined) return [first];
    const section = first.slice(0, first.lastIndexOf('.'));
    const [from, to] = [first, last].map((number) => Number(number.split('.')[2])) as [number, number];
    return Array.from({ length: to - from + 1 }, (_, i) => `${section}.${from + i}`);
  });

const rows = readFileSync(new URL('docs/accounts.md', root), 'utf8')
  .split('\n## OWASP ASVS')[1]!
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter((cells) => /^\d/.test(cells[1] ?? ''));

test('every requirement of levels 1 and 2 is in the table, once', () => {
  const given = rows.flatMap((cells) => numbers(cells[1]!));
  const asked = Object.entries(sections).flatMap(([section, count]) =>
    Array.from({ length: count }, (_, i) => `${section}.${i + 1}`),
  );
  assert.deepEqual(
    asked.filter((number) => !given.includes(number)),
    [],
  );
  assert.equal(new Set(given).size, given.length);
});

test('every test that it cites exists, and what cites none gives a reason', () => {
  const places = ['packages/server/test/accounts/', 'packages/server/test/', ''];
  for (const cells of rows) {
    const answer = cells[3]!;
    assert.ok(answer.length > 12, cells[1]);
    for (const [, cited] of answer.matchAll(/`([\w/-]+\.test\.ts)`/g))
      assert.ok(
        places.some((place) => existsSync(new URL(place + cited!, root))),
        cited,
      );
  }
});
