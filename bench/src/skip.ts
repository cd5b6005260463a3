/**
 * Lets a running service skip a part of its work and do it again, through its inspector. What a part costs is measured best in one process
 * with and without it: two processes that run the same code differ by more than most parts cost.
 */

export interface Skip {
  set(skipped: boolean): Promise<void>;
  close(): void;
}

interface Message {
  id?: number;
  method?: string;
  params?: { scriptId: string; url: string };
  result?: Record<string, unknown>;
}

const port = 9229; // where Node listens after SIGUSR1
const tries = 50;

/** Where the module says `if (before) return;`, it returns too while the part is skipped. */
export async function skipIn(pid: number, path: string, before: string): Promise<Skip> {
  process.kill(pid, 'SIGUSR1');
  const socket = new WebSocket(await address());
  const scripts: { scriptId: string; url: string }[] = [];
  const waiting = new Map<number, { resolve: (result: Message) => void; reject: (error: Error) => void }>();
  const fail = (): void => {
    for (const { reject } of waiting.values()) reject(new Error('the inspector closed the connection'));
  };
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error('the inspector refused the connection'));
  });
  socket.onclose = fail;
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data as string) as Message;
    if (message.method === 'Debugger.scriptParsed') scripts.push(message.params!);
    else if (message.id !== undefined) waiting.get(message.id)?.resolve(message);
  };
  let last = 0;
  const ask = async (method: string, params: object = {}): Promise<Record<string, unknown>> => {
    const id = ++last;
    const answer = await new Promise<Message>((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      socket.send(JSON.stringify({ id, method, params }));
    }).finally(() => waiting.delete(id));
    if (!answer.result) throw new Error(`${method} failed: ${JSON.stringify(answer)}`);
    return answer.result;
  };

  await ask('Debugger.enable');
  const scriptId = scripts.find(({ url }) => url.endsWith(path))?.scriptId;
  if (scriptId === undefined) throw new Error(`the service has not loaded ${path}`);
  const source = (await ask('Debugger.getScriptSource', { scriptId }))['scriptSource'] as string;
  const scriptSource = source.replace(
    `if (${before}) return;`,
    `if (${before} || globalThis.skipped) return;`,
  );
  if (scriptSource === source) throw new Error(`${path} does not contain "if (${before}) return;"`);
  const { status } = await ask('Debugger.setScriptSource', { scriptId, scriptSource });
  if (status !== 'Ok') throw new Error(`${path} could not be changed: ${String(status)}`);
  await ask('Debugger.disable');
  return {
    set: async (skipped) =>
      void (await ask('Runtime.evaluate', { expression: `globalThis.skipped = ${skipped}` })),
    close: () => socket.close(),
  };
}

async function address(): Promise<string> {
  for (let i = 0; ; i++)
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/json/list`);
      return ((await answer.json()) as { webSocketDebuggerUrl: string }[])[0]!.webSocketDebuggerUrl;
    } catch (error) {
      if (i === tries) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
}
