/** A secret key that was just shown, so that the first steps go on with it. It lives as long as the page. */

const keys = new Map<string, string>();

export const rememberKey = (env: string, secretKey: string): void => void keys.set(env, secretKey);

export const rememberedKey = (env: string): string | null => keys.get(env) ?? null;
