// Gives the users of an app their chat tokens: who somebody is, is decided here and nowhere else.
//   PARLEY_URL=http://127.0.0.1:8080 PARLEY_SECRET_KEY=sk_live_… PORT=3000 npm start
import { randomBytes } from 'node:crypto';
import { Parley } from '@parley/server-sdk';
import fastify from 'fastify';

const { PARLEY_URL, PARLEY_SECRET_KEY, PORT = '3000' } = process.env;
const parley = new Parley({ url: PARLEY_URL, secretKey: PARLEY_SECRET_KEY });

// In place of your own accounts and sessions.
const passwords = new Map([
  ['alice', 'wonderland'],
  ['bob', 'builder'],
]);
const sessions = new Map();

const app = fastify();

const credentials = {
  type: 'object',
  required: ['user', 'password'],
  properties: { user: { type: 'string' }, password: { type: 'string' } },
};
app.post('/sign-in', { schema: { body: credentials } }, async (request, reply) => {
  const { user, password } = request.body;
  if (!passwords.has(user) || passwords.get(user) !== password) return reply.code(401).send();
  // The chat shows this name; calling it again changes nothing.
  await parley.users.upsert(user, { name: user[0].toUpperCase() + user.slice(1) });
  const session = randomBytes(16).toString('hex');
  sessions.set(session, user);
  return reply.header('set-cookie', `session=${session}; Path=/; HttpOnly; SameSite=Lax`).code(204).send();
});

app.get('/chat-token', (request, reply) => {
  const session = /(?:^|; )session=([^;]+)/.exec(request.headers.cookie ?? '')?.[1];
  const user = sessions.get(session);
  if (user === undefined) return reply.code(401).send();
  // No request: the key signs it here. The client asks again before it expires.
  return reply.type('text/plain').send(parley.signToken({ userId: user, expiresIn: 3600 }));
});

console.log(`listening on ${await app.listen({ host: '127.0.0.1', port: Number(PORT) })}`);
