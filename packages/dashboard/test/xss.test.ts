import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { createDashboard, signedInOwner } from '../../server/test/accounts/dashboard.ts';
import { pretendNode } from '../../server/test/calls/tools.ts';
import { createApi, serverApi } from '../../server/test/support/api.ts';
import { useService } from '../../server/test/support/use.ts';
import { document as pdf, ready } from '../../server/test/uploads/files.ts';
import { loaded, openPage, signIn } from './browser.ts';
import { useBrowser } from '../../server/test/support/chromium.ts';

/** Whatever people store is shown as text: an attack in every field, each of which must be seen on some page. */

/** What each field holds. It would run in a page that is put together from text, and says which field it was. */
const fields = new Map<string, string>();
function attack(field: string, most = 200): string {
  const text = `<img src=x onerror="globalThis.broken='${field}'">`;
  const more = `"><script>globalThis.broken='${field}'</script>'-globalThis.broken-'{{constructor}}\${globalThis.broken=1}`;
  fields.set(field, text);
  return (text + more).slice(0, Math.max(most, text.length));
}
/** One that has room for less, or that is shown in part. */
function short(field: string, value: string, shown = value): string {
  fields.set(field, shown);
  return value;
}

describe('what people write', () => {
  const { service, db, sql } = useService({ own: true });
  const browser = useBrowser();

  /** Fills every field that a page shows, by the API where it lets it in, else as if another part of the service had been fooled. */
  async function store() {
    const server = serverApi(service.url);
    const dashboard = await signedInOwner(service.url);
    const inEnv = dashboard.in('env_dev');
    const ok = async (answer: Promise<{ status: number; body: any }>) => {
      const { status, body } = await answer;
      assert.ok(status < 300, JSON.stringify(body));
      return body;
    };
    const [env] = await sql(`SELECT no, org FROM environments WHERE id = 'env_dev'`);
    const { organizations } = await ok(dashboard.api('GET', '/v1/session'));
    const organization = organizations[0].id as string;

    await ok(
      server('PUT', '/v1/users/mallory', {
        name: attack('user name'),
        metadata: { [attack('name of metadata', 100)]: attack('user metadata') },
        imageUrl: short('picture', `https://x.example/"onerror="globalThis.broken=1`),
      }),
    );
    const conversation = await ok(
      server('POST', '/v1/conversations', {
        type: 'group',
        members: ['mallory', 'bob'],
        name: attack('conversation name'),
        metadata: { text: attack('conversation metadata') },
      }),
    );
    const message = await ok(
      server('POST', `/v1/conversations/${conversation.id}/messages`, {
        senderId: 'mallory',
        text: 'before',
        metadata: { text: attack('message metadata') },
        attachments: [
          await ready(server, conversation.id as string, {
            ...pdf,
            filename: `${attack('file name', 60)}.pdf`,
          }),
        ],
      }),
    );
    await ok(server('PATCH', `/v1/messages/${message.id}`, { text: attack('text'), expectedVersion: 1 }));
    const webhook = await ok(
      server('POST', '/v1/webhooks', {
        url: short(
          'webhook URL',
          `http://127.0.0.1:9/?x="><script>globalThis.broken=1</script>`,
          'globalThis.broken=1',
        ),
        events: ['message.created'],
        description: attack('webhook description'),
      }),
    );
    await ok(server('POST', `/v1/webhooks/${webhook.id}/test`));

    const key = await ok(inEnv('POST', '/v1/keys', { name: attack('key name') }));
    await ok(createApi(service.url, key.secretKey as string)('GET', '/v1/users'));
    await ok(dashboard.api('PATCH', '/v1/account', { name: attack('account name', 100) }));
    await ok(dashboard.api('PATCH', `/v1/organizations/${organization}`, { name: attack('organization') }));
    await ok(dashboard.api('PATCH', '/v1/environments/env_dev', { name: attack('environment') }));
    const invitation = await ok(
      dashboard.api('POST', `/v1/organizations/${organization}/invitations`, {
        email: short('invited', `<script>globalthis.broken='mail'</script>@x.example`),
        role: 'viewer',
      }),
    );
    const agent = createDashboard(service.url, {
      origin: service.url,
      'sec-fetch-site': 'same-origin',
      'user-agent': attack('user agent'),
    });
    await agent.signIn('owner@example.com', 'correct horse');

    await pretendNode(db);
    const call = await ok(
      server('POST', '/v1/calls', {
        conversationId: conversation.id,
        kind: 'audio',
        callerId: 'mallory',
        metadata: { text: attack('call metadata') },
      }),
    );

    const { token } = await ok(server('POST', '/v1/tokens', { userId: 'mallory' }));
    await ok(
      createApi(service.url, token as string)('POST', '/v1/push/devices', {
        provider: 'fcm',
        token: `${'f'.repeat(40)}${short('push token', '<b>t1>')}`,
      }),
    );
    await sql(
      `INSERT INTO push_attempts (env, conv, seq, usr, device, provider, result, reason, at)
       SELECT c.env, c.no, m.seq, u.no, 1, 'fcm', 'rejected', $1, now()
       FROM conversations c JOIN messages m ON m.env = c.env AND m.conv = c.no, users u
       WHERE c.id = $2 AND m.id = $3 AND u.env = c.env AND u.id = 'bob'`,
      [attack('answer of a push provider'), conversation.id, message.id],
    );
    const socket = new WebSocket(
      `${service.url.replace('http', 'ws')}/v1?sdk=${encodeURIComponent(attack('SDK', 60))}`,
      'chat.v1',
    );
    socket.onopen = () => socket.send(JSON.stringify({ t: 'auth', d: { token } }));
    await new Promise((resolve) => (socket.onmessage = resolve));
    // Whoever answers no heartbeat is gone after a minute, and so many pages may take longer.
    socket.onmessage = () => socket.send('{"t":"hb"}');

    await ok(inEnv('PUT', '/v1/storage/database/b', { url: 'https://x.example/history' }));
    // Held by nobody, so that no worker of the sink tidies it up.
    await sql(
      `UPDATE storage SET mode = 'byo_db', active = 'b', owner = 'nobody', owned_until = 'infinity', status = 'failing', error = $2
       WHERE env = $1`,
      [env!['no'], attack('error of a database')],
    );
    await sql(
      `UPDATE storage_slots SET shown_url = $2, shown_replica_url = $3, schema = $4, last_test = $5 WHERE env = $1`,
      [
        env!['no'],
        attack('database URL'),
        attack('replica URL'),
        attack('schema'),
        { at: new Date().toISOString(), ok: false, errors: [attack('test of a database')], warnings: [] },
      ],
    );
    await sql(
      `WITH made AS (INSERT INTO media_storages (env, provider, config, shown, created_at) VALUES ($1, 's3', 'x', $2, now()) RETURNING no)
       UPDATE storage SET media = made.no, media_test = $3 FROM made WHERE env = $1`,
      [
        env!['no'],
        { bucket: attack('bucket') },
        {
          ok: false,
          at: new Date().toISOString(),
          provider: 's3',
          error: attack('error of a bucket'),
          checks: [{ name: 'upload', ok: false, detail: attack('check of a bucket') }],
        },
      ],
    );
    await sql(
      `INSERT INTO request_log (env, at, kind, failed, method, operation, status, code, ms, caller, caller_id, address)
       VALUES ($1, now() + interval '1 minute', 'request', true, $2, $3, 400, $4, 1, 'server', $5, $6)`,
      [
        env!['no'],
        ...['log: method', 'log: operation', 'log: code', 'log: caller', 'log: address'].map((f) =>
          attack(f),
        ),
      ],
    );
    await sql(
      `INSERT INTO audit (id, env, org, actor, action, target, ip, request_id, changes) VALUES ('aud_x', $1, $2, $3, $4, $5, $6, $7, $8)`,
      [
        env!['no'],
        env!['org'],
        ...['actor', 'action', 'target', 'address', 'request'].map((f) => attack(`audit: ${f}`)),
        { before: { [attack('audit: field')]: attack('audit: before') }, after: null },
      ],
    );
    // Last, because it is a second factor.
    await sql(
      `INSERT INTO passkeys (id, account, credential, public_key, sign_count, transports, name, created_at)
       SELECT 'pk_x', no, 'x', 'x', 0, '{}', $1, now() FROM accounts WHERE email = 'owner@example.com'`,
      [attack('passkey')],
    );
    return { conversation, message, webhook, call, invitation, close: () => socket.close() };
  }

  const seen = new Set<string>();
  /** Nothing ran, nothing came into being that could; and which fields are on the screen. */
  async function look(page: Page, path: string): Promise<void> {
    await loaded(page);
    const found = await page.evaluate(() => ({
      ran: (globalThis as { broken?: string }).broken,
      scripts: [...document.scripts].filter((script) => !script.src.startsWith(location.origin)).length,
      handlers: document.querySelectorAll('[onerror], [onload], [onclick], img[src="x"]').length,
      links: [...document.querySelectorAll('a')].filter((a) => !/^https?:$/.test(new URL(a.href).protocol))
        .length,
      text: [
        document.body.innerText,
        ...[...document.querySelectorAll('input')].map((input) => input.value),
      ].join('\n'),
    }));
    const { text, ...bad } = found;
    assert.deepEqual(bad, { ran: undefined, scripts: 0, handlers: 0, links: 0 }, path);
    // JSON escapes quotes.
    const plain = text.replaceAll(String.raw`\"`, '"');
    for (const [field, value] of fields) if (plain.includes(value)) seen.add(field);
  }

  it('is shown as text, every stored field on every page', async () => {
    const { page, problems } = await openPage(browser, service.url);
    await signIn(page, service.url);
    const { conversation, message, webhook, call, invitation, close } = await store();
    const text = attack('address of a page');
    const open = `/conversations/${conversation.id}`;
    const paths = [
      '',
      '/users',
      '/users/mallory',
      `/users/${encodeURIComponent(text)}`,
      open,
      `${open}?view=events`,
      '/webhooks',
      `/webhooks/${webhook.id}`,
      '/keys',
      '/audit',
      '/team',
      '/settings',
      '/push',
      '/live',
      '/analytics',
      '/usage',
      '/storage',
      '/calls',
      `/calls/${call.id}`,
      '/conversations',
      `/trace?userId=mallory`,
      `/delivery?messageId=${message.id}&userId=bob`,
      `/logs?operation=${encodeURIComponent(text)}`,
      `/audit?action=${encodeURIComponent(text.slice(0, 100))}`,
      `/${encodeURIComponent(text)}`,
      '/../account',
      '/../new-environment',
    ];
    const visit = async (path: string) => {
      await page.goto(new URL(`${service.url}/dashboard/env_dev${path}`).href);
      await page.getByRole('main').locator('h1, h3, [role=alert]').first().waitFor();
    };
    for (const path of paths) {
      await visit(path);
      await look(page, path);
    }
    // What needs a click.
    await visit(`${open}?view=messages`);
    await page.getByRole('button', { name: 'Show its history' }).click();
    await page.getByRole('list', { name: 'History, oldest first' }).waitFor();
    await look(page, 'history');
    await visit('/logs');
    await page.getByRole('button', { name: 'log: operation' }).click();
    await page.getByRole('dialog').waitFor();
    await look(page, 'log entry');
    await visit('/webhooks');
    await page.getByRole('main').getByRole('link').first().click();
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await page.getByRole('dialog').waitFor();
    await look(page, 'edit a webhook');
    assert.deepEqual(problems, []);

    const { page: stranger, problems: theirs } = await openPage(browser, service.url);
    await stranger.goto(invitation.link as string);
    await stranger.getByText('joins').waitFor();
    await look(stranger, 'invitation');
    assert.deepEqual(theirs, []);
    const unseen = [...fields.keys()].filter((field) => !seen.has(field));
    assert.deepEqual(unseen, [], 'every field was on some page');
    close();
  });
});
