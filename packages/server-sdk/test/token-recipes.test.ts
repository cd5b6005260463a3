import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { secretKey } from './support.ts';

/** The code of docs/tokens.md, run as it stands there, in the languages that this machine has. */
const page = readFileSync(new URL('../../../docs/tokens.md', import.meta.url), 'utf8');
const code = new Map([...page.matchAll(/```(\w+)\n([\s\S]*?)```/g)].map((m) => [m[1]!, m[2]!]));
const folder = mkdtempSync(join(tmpdir(), 'parley-recipes-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const languages: Record<string, { file: string; run: string[]; has: string[] }> = {
  js: { file: 'token.cjs', run: [process.execPath], has: [process.execPath, '--version'] },
  python: { file: 'token.py', run: ['python3'], has: ['python3', '--version'] },
  go: { file: 'token.go', run: ['go', 'run'], has: ['go', 'version'] },
  php: { file: 'token.php', run: ['php'], has: ['php', '--version'] },
  ruby: { file: 'token.rb', run: ['ruby'], has: ['ruby', '--version'] },
  java: { file: 'UserToken.java', run: ['java'], has: ['java', '--version'] },
};

test('docs/tokens.md has code for each language', () => {
  assert.deepEqual([...code.keys()].sort(), Object.keys(languages).sort());
});

const decode = (part: string | undefined): any => JSON.parse(Buffer.from(part ?? '', 'base64url').toString());

for (const [language, { file, run, has }] of Object.entries(languages)) {
  const skip = spawnSync(has[0]!, has.slice(1)).status !== 0 && `this machine has no ${has[0]!}`;
  test(`docs/tokens.md: what the ${language} code signs is a user token`, { skip }, () => {
    writeFileSync(join(folder, file), code.get(language)!);
    const token = execFileSync(run[0]!, [...run.slice(1), file], {
      cwd: folder,
      env: { ...process.env, PARLEY_SECRET_KEY: secretKey },
      encoding: 'utf8',
    }).trim();
    const [header, claims, signature, ...rest] = token.split('.');
    assert.deepEqual(rest, []);
    assert.deepEqual(decode(header), { alg: 'HS256', typ: 'JWT', kid: 'k'.repeat(16) });
    const { sub, iat, exp } = decode(claims);
    assert.deepEqual([sub, exp - iat], ['alice', 3600]);
    assert.ok(Math.abs(iat - Date.now() / 1000) < 600);
    assert.equal(
      signature,
      createHmac('sha256', secretKey).update(`${header}.${claims}`).digest('base64url'),
    );
  });
}
