import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { freePort } from '../../server/test/start/npm-start.ts';
import { environments } from '../../server/test/support/service.ts';
import { use, useService } from '../../server/test/support/use.ts';
import { buildClient, startProgram, writeFiles } from './programs.ts';
import { makeFolder, ownNames } from './run.ts';

/** The servers that the guides have their readers write. */

const { service, server } = useService();
const folder = use(makeFolder, (made) => made.remove());
const long = { timeout: 5 * 60_000 };
const settings = () => ({ PARLEY_URL: service.url, PARLEY_SECRET_KEY: environments.dev.secretKey });

describe('programs of the guides', () => {
  it('quickstart: the server gives the page, the client and tokens that work', long, async () => {
    const own = ownNames();
    await writeFiles(folder, 'quickstart.md', own);
    await buildClient(folder);
    const program = await startProgram(folder, 'server.mjs', { ...settings(), PORT: '0' });
    try {
      const get = async (path: string) => (await fetch(program.url + path)).text();
      assert.match(await get('/'), /<script type="module">/);
      assert.ok((await get('/parley.js')).length > 10_000);
      assert.equal(await get('/url'), service.url);
      const headers = { authorization: `Bearer ${await get('/token')}` };
      const me = await fetch(`${service.url}/v1/users/${own('alice')}`, { headers });
      assert.equal(me.status, 200, await me.text());
      assert.equal((await fetch(`${program.url}/x`)).status, 404);
    } finally {
      await program.stop();
    }
  });

  it('webhooks: the receiver hears of a message, and refuses what is forged', long, async () => {
    const own = ownNames();
    await writeFiles(folder, 'webhooks.md', own);
    const port = String(await freePort());
    const url = `http://127.0.0.1:${port}/parley`;
    const { body: webhook } = await server('POST', '/v1/webhooks', { url, events: ['message.created'] });
    const program = await startProgram(folder, 'receiver.mjs', {
      PORT: port,
      WEBHOOK_SECRET: webhook.secret,
    });
    try {
      assert.equal((await fetch(url, { method: 'POST', body: '{}' })).status, 400);
      const members = [own('alice'), own('bob')];
      const { body: direct } = await server('POST', '/v1/conversations', { type: 'direct', members });
      const text = own('for the receiver of alice');
      await server('POST', `/v1/conversations/${direct.id}/messages`, { senderId: own('alice'), text });
      await program.said(new RegExp(`${own('alice')}: ${text}`));
    } finally {
      await program.stop();
      await server('DELETE', `/v1/webhooks/${webhook.id}`);
    }
  });

  it('hooks: the hook rejects, rewrites and allows, and refuses what is forged', long, async () => {
    const own = ownNames();
    await writeFiles(folder, 'hooks.md', own);
    const port = String(await freePort());
    const url = `http://127.0.0.1:${port}/`;
    const hook = await server('PUT', '/v1/hooks/before-send', { url, servers: true, timeoutMs: 3_000 });
    const program = await startProgram(folder, 'hook.mjs', { PORT: port, HOOK_SECRET: hook.body.secret });
    try {
      assert.equal((await fetch(url, { method: 'POST', body: '{}' })).status, 401);
      const members = [own('alice'), own('bob')];
      const { body: direct } = await server('POST', '/v1/conversations', { type: 'direct', members });
      const say = async (text: string) => {
        const path = `/v1/conversations/${direct.id}/messages`;
        const { body } = await server('POST', path, { senderId: own('alice'), text });
        return body.error?.message ?? body.text;
      };
      assert.equal(await say('Our casino!'), 'Advertising is not welcome here.');
      assert.equal(await say('Call +49 30 123 4567'), 'Call (number hidden)');
      assert.equal(await say('Hello'), 'Hello');
    } finally {
      await program.stop();
      await server('DELETE', '/v1/hooks/before-send');
    }
  });
});
