import type { Code } from './code.ts';
import { examples } from './examples.ts';
import type { Call } from './reference-call.ts';

/** A call as a program in four languages. Each runs as it stands, with the address and the credential in the environment. */

const keyName = 'PARLEY_SECRET_KEY';
const tokenName = 'PARLEY_TOKEN';
const sessionName = 'PARLEY_SESSION';

const sampleId = '01hzy3v7k8m2q4r6t8w0x2z4';
/** The sample ids, by their prefix; those of the generated examples are the same. */
export const idOf = (prefix: string): string =>
  `${prefix}_${sampleId}${{ conv: 'a6', msg: 'b7', att: 'd9' }[prefix] ?? 'c8'}`;

type Fields = Record<string, unknown>;

export interface Filled {
  /** With the ids in it and without the query. */
  path: string;
  ids: string[];
  query: Fields;
  body: Fields | undefined;
}

/** What an example leaves out: fields that are empty, and those that say nothing. */
const isEmpty = (value: unknown): boolean =>
  value === null || (typeof value === 'object' && Object.keys(value).length === 0);

/** The call with values for its parameters. */
export function filled({ op, path, parameters, body }: Call): Filled {
  const { query = {}, body: given, ids: named = {} } = examples[op.operationId] ?? {};
  const ids: string[] = [];
  const full = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const about = parameters.find((one) => one.in === 'path' && one.name === name);
    const prefix = /`([a-z]+)_…`/.exec(about?.description ?? '')?.[1];
    const [choice] = about?.schema.enum ?? [];
    const id = named[name] ?? (prefix === undefined ? (choice ?? 'alice') : idOf(prefix));
    ids.push(String(id));
    return encodeURIComponent(String(id));
  });
  const sample = body?.example as Fields | undefined;
  const shown =
    given ??
    (sample &&
      Object.fromEntries(
        Object.entries(sample).filter(([name, value]) => {
          return body?.schema.required?.includes(name) === true || !isEmpty(value);
        }),
      ));
  return { path: full, ids, query, body: shown };
}

const search = (query: Fields): string => {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) text.set(name, String(value));
  return text.size === 0 ? '' : `?${text.toString()}`;
};

type Credential = 'key' | 'token' | 'session' | 'none';
export const credentialOf = ({ op }: Call): Credential => {
  const callers = op['x-callers'] ?? [];
  if (callers.includes('server')) return 'key';
  if (callers.includes('client')) return 'token';
  return callers.includes('dashboard') ? 'session' : 'none';
};
const variable: Record<Credential, string> = {
  key: keyName,
  token: tokenName,
  session: sessionName,
  none: '',
};

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
const indented = (value: unknown, by: string): string =>
  JSON.stringify(value, null, 2).replaceAll('\n', `\n${by}`);

function curl(call: Call, { path, query, body }: Filled): string {
  const credential = credentialOf(call);
  const lines = [
    `curl${call.method === 'GET' ? ' -s' : ` -s -X ${call.method}`} "$PARLEY_URL${path}${search(query)}"`,
  ];
  if (credential === 'key' || credential === 'token')
    lines.push(`-H "Authorization: Bearer $${variable[credential]}"`);
  if (credential === 'session')
    lines.push(`-b "parley_session=$${sessionName}"`, `-H "Chat-Env: $PARLEY_ENV"`);
  // The control plane takes changes from its own pages only.
  if (credential === 'session' && call.method !== 'GET') lines.push(`-H "Origin: $PARLEY_URL"`);
  if (body !== undefined)
    lines.push(`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body, null, 2))}`);
  return lines.join(' \\\n  ');
}

/** JSON as a JavaScript programmer writes it. */
const literal = (value: unknown, by = ''): string =>
  indented(value, by)
    .replaceAll(/"(\w+)":/g, '$1:')
    .replaceAll(/"((?:[^"\\']|\\[^u])*)"/g, (_, text: string) => `'${text.replaceAll('\\"', '"')}'`);

/** The methods of the server SDK are named like the operations, and take the ids of the path, then the fields. */
function sdk({ op }: Call, { ids, query, body }: Filled): string {
  const fields = { ...query, ...body };
  const args = ids.map((id) => `'${id}'`);
  if (Object.keys(fields).length > 0 || body !== undefined) args.push(literal(fields));
  return [
    `import { Parley } from '@parley/server-sdk';`,
    '',
    `const parley = new Parley({ url: process.env.PARLEY_URL, secretKey: process.env.${keyName} });`,
    '',
    `const answer = await parley.${op.operationId}(${args.join(', ')});`,
    `console.log(answer);`,
  ].join('\n');
}

function node(call: Call, { path, query, body }: Filled): string {
  const lines = [`  method: '${call.method}',`];
  const headers = [`authorization: \`Bearer \${process.env.${tokenName}}\``];
  if (body !== undefined) headers.push(`'content-type': 'application/json'`);
  lines.push(`  headers: { ${headers.join(', ')} },`);
  if (body !== undefined) lines.push(`  body: JSON.stringify(${literal(body, '  ')}),`);
  return [
    `const answer = await fetch(\`\${process.env.PARLEY_URL}${path}${search(query)}\`, {`,
    ...lines,
    '});',
    `console.log(answer.status, await answer.text());`,
  ].join('\n');
}

function python(call: Call, { path, query, body }: Filled): string {
  const data =
    body === undefined
      ? []
      : [
          `    data=json.dumps(${indented(body, '    ').replaceAll(/\b(true|false|null)\b(?=,?$)/gm, (word) => pythonWords[word]!)}).encode(),`,
        ];
  return [
    `import ${body === undefined ? '' : 'json, '}os, urllib.request`,
    '',
    `request = urllib.request.Request(`,
    `    os.environ["PARLEY_URL"] + "${path}${search(query)}",`,
    `    method="${call.method}",`,
    `    headers={`,
    `        "Authorization": "Bearer " + os.environ["${variable[credentialOf(call)]}"],`,
    ...(body === undefined ? [] : [`        "Content-Type": "application/json",`]),
    `    },`,
    ...data,
    `)`,
    `with urllib.request.urlopen(request) as answer:`,
    `    print(answer.status, answer.read().decode())`,
  ].join('\n');
}
const pythonWords: Record<string, string> = { true: 'True', false: 'False', null: 'None' };

function go(call: Call, { path, query, body }: Filled): string {
  const sent = body === undefined ? 'nil' : `strings.NewReader(\`${indented(body, '\t')}\`)`;
  const packages = ['fmt', 'io', 'net/http', 'os', ...(body === undefined ? [] : ['strings'])];
  return [
    'package main',
    '',
    'import (',
    ...packages.map((name) => `\t"${name}"`),
    ')',
    '',
    'func main() {',
    `\trequest, _ := http.NewRequest("${call.method}", os.Getenv("PARLEY_URL")+"${path}${search(query)}", ${sent})`,
    `\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("${variable[credentialOf(call)]}"))`,
    ...(body === undefined ? [] : [`\trequest.Header.Set("Content-Type", "application/json")`]),
    '\tanswer, err := http.DefaultClient.Do(request)',
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    '\tdefer answer.Body.Close()',
    '\ttext, _ := io.ReadAll(answer.Body)',
    '\tfmt.Println(answer.Status, string(text))',
    '}',
  ].join('\n');
}

/** The dashboard is a program of ours: what only its session may call is shown with curl alone. */
export function samples(call: Call): Code[] {
  const given = filled(call);
  const credential = credentialOf(call);
  const shell = { label: 'curl', language: 'bash', text: curl(call, given) };
  if (credential === 'session' || credential === 'none') return [shell];
  return [
    shell,
    {
      label: 'Node',
      language: 'javascript',
      text: credential === 'key' ? sdk(call, given) : node(call, given),
    },
    { label: 'Python', language: 'python', text: python(call, given) },
    { label: 'Go', language: 'go', text: go(call, given) },
  ];
}
