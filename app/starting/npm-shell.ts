/** Between two checks whether the shell of npm still runs. Milliseconds. */
const CHECK_EVERY_MS = 1000;

/**
 * Ends a process that npm or npx has started, by SIGTERM, when the shell between them ends. npm passes signals on to its
 * shell only. Some shells put their last command in their own place (bash); others end by the signal and tell their
 * child nothing (dash). Without npm it does nothing.
 */
export function endWithNpmShell(): void {
  if (process.env['npm_lifecycle_event'] === undefined) return;
  const shell = process.ppid;
  const checking = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(checking);
    process.kill(process.pid, 'SIGTERM');
  }, CHECK_EVERY_MS);
  checking.unref();
}
