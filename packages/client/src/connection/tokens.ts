import { ParleyError } from '../errors.ts';

export type TokenProvider = () => Promise<string> | string;

/**
 * The token in use. States: empty | fetching | held.
 * `get` moves empty to held; `refresh(seen)` replaces the token only when it is still the one that was
 * refused, so that many refusals of one token ask the provider once.
 * sdk#one-user: a token of another user than the first is refused, because all that the client holds is of the first.
 */
export class Tokens {
  #provider: TokenProvider;
  #token: string | null = null;
  #fetching: Promise<string> | null = null;
  /** The user that the first token named. */
  user: string | null = null;
  constructor(provider: TokenProvider) {
    this.#provider = provider;
  }
  async get(): Promise<string> {
    return this.#token ?? this.#fetch();
  }
  refresh(seen: string | null): Promise<string> {
    if (this.#token === seen) this.#token = null;
    return this.get();
  }
  #fetch(): Promise<string> {
    return (this.#fetching ??= (async () => {
      try {
        await Promise.resolve(); // A provider that returns at once must not finish before `#fetching` is set.
        const token = await this.#provider();
        if (typeof token !== 'string' || token === '') throw new Error('no token');
        const user = tokenUser(token);
        if (user && (this.user ??= user) !== user) throw new Error('wrong user');
        return (this.#token = token);
      } catch (e) {
        throw new ParleyError('token_provider', e instanceof Error ? e.message : String(e));
      } finally {
        this.#fetching = null;
      }
    })());
  }
}

/** The user that a token names, read without verifying it, to know whose outbox this is before `hello` says so. */
function tokenUser(token: string): string | null {
  try {
    const payload = token.split('.')[1]!.replace(/-/g, '+').replace(/_/g, '/');
    return (JSON.parse(atob(payload)) as { sub?: string }).sub ?? null;
  } catch {
    return null;
  }
}
