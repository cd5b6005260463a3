import type { LocalUser } from '../../src/realtime/local-user.ts';

/** A user of environment 1 without sockets. */
export const localUser = (no: number): LocalUser => ({
  env: 1,
  no,
  id: `u${no}`,
  sessions: [],
  routes: [],
  silenced: false,
  loading: null,
  trace: null,
});
