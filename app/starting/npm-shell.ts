const CHECK_INTERVAL_MS = 1000;

/**
 * Ends a process of npm or npx by SIGTERM when the shell between them ends. npm sends signals only to its shell. Some
 * shells (bash) replace themselves by their last command, others (dash) end without telling their child.
 */
export function endWithNpmShell(): void {
  if (process.env['npm_lifecycle_event'] === undefined) return;
  const shell = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, CHECK_INTERVAL_MS);
  timer.unref();
}
