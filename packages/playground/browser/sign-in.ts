/** Development tokens: a JWT without a signature, accepted by development environments alone. */

const encode = (value: object): string =>
  btoa(JSON.stringify(value)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

export function developmentToken(userId: string): string {
  const now = Math.floor(Date.now() / 1000);
  return `${encode({ alg: 'none', typ: 'JWT' })}.${encode({ sub: userId, iat: now, exp: now + 3600 })}.`;
}

/** A name as people type it to a user id, or null. */
export function userIdOf(name: string): string | null {
  const id = name.trim().normalize('NFKD').replaceAll(/[̀-ͯ]/g, '').toLowerCase().replaceAll(/\s+/g, '-');
  return /^[A-Za-z0-9_\-@.:]{1,128}$/.test(id) ? id : null;
}

const key = 'parley-playground-name';
export const rememberedName = (): string | null => sessionStorage.getItem(key);
export const rememberName = (name: string): void => sessionStorage.setItem(key, name);
export const forgetName = (): void => sessionStorage.removeItem(key);
