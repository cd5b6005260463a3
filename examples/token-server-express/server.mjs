// Gives the users of an app their chat tokens: who somebody is, is decided here and nowhere else.
//   PARLEY_URL=http://127.0.0.1:8080 PARLEY_SECRET_KEY=sk_live_… PORT=3000 npm start
import { randomBytes } from 'node:crypto';
import { Parley } from '@parley/server-sdk';
import express from 'express';

const { PARLEY_URL, PARLEY_SECRET_KEY, PORT = '3000' } = process.env;
const parley = new Parley({ url: PARLEY_URL, secretKey: PARLEY_SECRET_KEY });

// In place of your own accounts and sessions.
const passwords = new Map([
  ['alice', 'wonderland'],
  ['bob', 'builder'],
]);
const sessions = new Map();

const app = express();
app.use(express.json());

app.post('/sign-in', async (request, response) => {
  const { user, password } = request.body ?? {};
  if (!passwords.has(user) || passwords.get(user) !== password) return response.sendStatus(401);
  // The chat shows this name; calling it again changes nothing.
  await parley.users.upsert(user, { name: user[0].toUpperCase() + user.slice(1) });
  const session = randomBytes(16).toString('hex');
  sessions.set(session, user);
  response.cookie('session', session, { httpOnly: true, sameSite: 'lax' }).sendStatus(204);
});

app.get('/chat-token', (request, response) => {
  const session = /(?:^|; )session=([^;]+)/.exec(request.headers.cookie ?? '')?.[1];
  const user = sessions.get(session);
  if (user === undefined) return response.sendStatus(401);
  // No request: the key signs it here. The client asks again before it expires.
  response.type('text/plain').send(parley.signToken({ userId: user, expiresIn: 3600 }));
});

const server = app.listen(Number(PORT), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
