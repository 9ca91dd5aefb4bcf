import type { Configuration } from '../configuration/configuration.ts';
import { credentialsFile } from './credentials-file.ts';
import type { AdminCredentials } from './first-start.ts';

/**
 * The text that the service prints once it listens: its address, the first agent, and how to get a token. A generated
 * secret appears once. One from `SVC_ADMIN_SECRET` never appears, because output often ends up in logs.
 *
 * @param admin the agent that this start has created; null if there was one
 */
export function greeting(
  address: string,
  admin: AdminCredentials | null,
  { adminSecret, dataDirectory }: Pick<Configuration, 'adminSecret' | 'dataDirectory'>,
): string {
  if (admin === null) {
    const lines = [
      `Listening on ${address}. Get a token with an agent's id and secret:`,
      '',
      ...tokenCall(address, JSON.stringify({ agent_id: '<id>', agent_secret: '<secret>' })),
    ];
    return lines.join('\n');
  }
  const file = credentialsFile(dataDirectory);
  const isSupplied = admin.agent_secret === adminSecret;
  const lines = [
    ...(isSupplied
      ? [`Listening on ${address}. Created the first agent with the secret of SVC_ADMIN_SECRET,`]
      : [`Listening on ${address}. Created the first agent. Its secret is shown only now,`]),
    `and stored in ${file}:`,
    '',
    `  id      ${admin.agent_id}`,
    ...(isSupplied ? [] : [`  secret  ${admin.agent_secret}`]),
    '',
    'Get a token first:',
    '',
    ...tokenCall(address, `@${file}`),
  ];
  return lines.join('\n');
}

function tokenCall(address: string, data: string): readonly string[] {
  return [
    `  curl -s ${address}/agents/auth/token \\`,
    `    -H 'content-type: application/json' -d '${data}'`,
  ];
}
