// Commands for a terminal that do what the page does with a run.

/** Quotes a string for a POSIX shell. */
const quoted = (text) =>
  /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

const root = () => new URL('../../', document.baseURI).href;

function curl(method, path, body) {
  const lines = [
    `curl -X ${method} ${quoted(root() + path)}`,
    '-H "Authorization: Bearer $SVC_TOKEN"',
  ];
  if (body !== undefined) {
    lines.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`);
  }
  return lines.join(' \\\n  ');
}

const svc = (...words) => ['svc', ...words.map(quoted)].join(' ');

/**
 * @param {object} run
 * @param {object} params that override the task's defaults when the task is run again
 * @returns {{name: string, curl: string, svc: string}[]}
 */
export function commandsOf({ id, state, task_id: task }, params) {
  const hasParams = Object.keys(params).length > 0;
  const given = hasParams ? ['--params', JSON.stringify(params)] : [];
  const again = {
    name: 'Run the task again',
    curl: curl('POST', `tasks/${task}/run_now`, hasParams ? { params } : {}),
    svc: svc('tasks', 'run', task, ...given),
  };
  const retry = {
    name: 'Retry this run',
    curl: curl('POST', `runs/${id}/retry?from=failed_step`),
    svc: svc('runs', 'retry', id),
  };
  const show = {
    name: 'Show this run',
    curl: curl('GET', `runs/${id}`),
    svc: svc('runs', 'show', id),
  };
  return [...(state === 'failed' ? [retry] : []), again, show];
}
