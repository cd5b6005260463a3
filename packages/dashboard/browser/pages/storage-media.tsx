import { Alert, Button, Group, NativeSelect, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { Input, MediaTest, StorageRecord } from '@parley/protocol';
import { useChange } from '../api/hooks.ts';
import { useMay } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Facts } from '../ui/facts.tsx';
import { Field, PasswordField } from '../ui/field.tsx';
import { Section } from '../ui/page.tsx';
import { Failed } from '../ui/states.tsx';
import { Time } from '../ui/time.tsx';

type MediaInput = Input<'storage.setMedia'>;
type Provider = MediaInput['provider'];
type TextField = Exclude<keyof MediaInput, 'provider' | 'forcePathStyle' | 'origin'>;

/** What each provider asks for: name, label, whether it is needed. Keys are typed like passwords. */
const forms: Record<Provider, [label: string, fields: [TextField, string, boolean][]]> = {
  s3: [
    'S3, or compatible',
    [
      ['endpoint', 'Endpoint (if not AWS)', false],
      ['region', 'Region', true],
      ['bucket', 'Bucket', true],
      ['accessKeyId', 'Access key id', true],
      ['secretAccessKey', 'Secret access key', true],
      ['prefix', 'Prefix', false],
    ],
  ],
  azure: [
    'Azure Blob Storage',
    [
      ['account', 'Account', true],
      ['accountKey', 'Account key', true],
      ['container', 'Container', true],
      ['prefix', 'Prefix', false],
      ['endpoint', 'Endpoint', false],
    ],
  ],
  cloudinary: [
    'Cloudinary',
    [
      ['cloudinaryUrl', 'Cloudinary URL', true],
      ['folder', 'Folder', false],
    ],
  ],
};
const secrets = new Set<TextField>(['secretAccessKey', 'accountKey', 'cloudinaryUrl']);

export function Media({ storage: { media } }: { storage: StorageRecord }): ReactNode {
  const may = useMay('storage.setMedia');
  const test = useChange('storage.testMedia');
  const remove = useChange('storage.removeMedia');
  const [origin, setOrigin] = useState('');
  const asked = origin === '' ? {} : { origin };
  const own = media.provider !== 'managed';
  const [setting, setSetting] = useState(false);
  return (
    <Section title="Files">
      <Facts
        label="Files"
        of={[
          ['Kept', own ? media.provider : 'with this service'],
          ...Object.entries(media)
            .filter(([name]) => name !== 'provider' && name !== 'lastTest')
            .map(([name, value]): [string, ReactNode] => [name, String(value)]),
          ['Last test', media.lastTest ? <Time at={media.lastTest.at} /> : 'never'],
        ]}
      />
      {media.lastTest ? <MediaResult test={media.lastTest} /> : null}
      {may ? (
        <Group gap="xs">
          <Button
            size="compact-sm"
            variant="default"
            loading={test.isPending}
            onClick={() => test.mutate(asked)}
          >
            Test
          </Button>
          <Button
            size="compact-sm"
            variant="default"
            aria-expanded={setting}
            onClick={() => setSetting(!setting)}
          >
            {own ? 'Use another storage' : 'Use your own storage'}
          </Button>
          {own ? (
            <ConfirmButton
              label="Keep files with this service again"
              title="Keep new files with this service?"
              pending={remove.isPending}
              error={remove.error}
              onConfirm={() => remove.mutateAsync({})}
            >
              Old files stay in your storage and can still be read.
            </ConfirmButton>
          ) : null}
        </Group>
      ) : null}
      {test.error ? <Failed error={test.error} /> : null}
      {may && setting ? (
        <Stack maw={480} gap="sm" className="box">
          <Field
            label="Origin of your web app"
            description="The origin that browsers upload from: the test then also checks the CORS rules."
            placeholder="https://app.example.com"
            autoComplete="off"
            value={origin}
            set={setOrigin}
          />
          <SetMedia asked={asked} />
        </Stack>
      ) : null}
    </Section>
  );
}

const MediaResult = ({ test }: { test: MediaTest }): ReactNode => (
  <Alert
    color={test.ok ? 'teal' : 'red'}
    variant="light"
    role="status"
    title={test.ok ? 'The test passed' : (test.error ?? 'The test failed')}
  >
    {test.checks.map((check) => (
      <Text key={check.name} size="sm">
        {check.name}: {check.ok ? 'works' : 'fails'} {check.detail ?? ''}
      </Text>
    ))}
  </Alert>
);

function SetMedia({ asked }: { asked: { origin?: string } }): ReactNode {
  const [provider, setProvider] = useState<Provider>('s3');
  const [values, setValues] = useState<Partial<Record<TextField, string>>>({});
  const set = useChange('storage.setMedia', {
    done: ({ ok }) => {
      if (ok) setValues({});
    },
  });
  const [, fields] = forms[provider];
  return (
    <form
      aria-label="Keep files in your own storage"
      onSubmit={(event) => {
        event.preventDefault();
        const given = fields.map(([name]) => [name, values[name] ?? '']).filter(([, value]) => value !== '');
        set.mutate({ provider, ...asked, ...Object.fromEntries(given) });
      }}
    >
      <Stack gap="sm">
        <NativeSelect
          label="Your own storage"
          value={provider}
          onChange={(event) => setProvider(event.currentTarget.value as Provider)}
          data={Object.entries(forms).map(([value, [label]]) => ({ value, label }))}
        />
        {fields.map(([name, label, required]) => {
          const Input = secrets.has(name) ? PasswordField : Field;
          return (
            <Input
              key={name}
              label={label}
              required={required}
              autoComplete="off"
              value={values[name] ?? ''}
              set={(value) => setValues((before) => ({ ...before, [name]: value }))}
            />
          );
        })}
        {set.error ? <Failed error={set.error} /> : null}
        {set.data ? <MediaResult test={set.data} /> : null}
        <Group>
          <Button type="submit" variant="default" loading={set.isPending}>
            Test and use it
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
