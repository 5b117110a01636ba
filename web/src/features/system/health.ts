import type { System } from '@/api/types'
import { formatBytes, formatCount } from '@/lib/format'

/** Less free space is reported, as in `ferret doctor`, because checkpoints would soon fill it. */
const NEEDED_BYTES = 2e9

interface HealthIssue {
  title: string
  detail: string
  command?: string
}

/** Issues for an operator, the most serious first; empty if all is well. */
export function healthIssues({ parts, queues, disk, given_up: givenUp }: System): HealthIssue[] {
  const found: HealthIssue[] = []
  for (const [name, { ready, detail }] of [
    ['database', parts.database],
    ['schema', parts.migrations],
    ['broker', parts.broker],
    ['storage', parts.storage],
  ] as const) {
    if (!ready) found.push({ title: `The ${name} cannot be used`, detail: detail ?? 'It does not answer.' })
  }
  for (const { queue, workers, waiting } of queues) {
    if (workers > 0) continue
    const detail = waiting > 0 ? `${formatCount(waiting)} ${waiting === 1 ? 'task waits' : 'tasks wait'} for one.` : ''
    found.push({
      title: `No worker for ${queue}`,
      detail: `${detail} Start one where the server runs, or on another machine:`.trim(),
      command: `ferret worker ${queue}`,
    })
  }
  if (disk.free < NEEDED_BYTES) {
    const detail = `${formatBytes(disk.free)} are free. Free some space, or delete experiments and then remove their files:`
    found.push({ title: 'The disk is nearly full', detail, command: 'ferret storage clean' })
  }
  if (givenUp > 0) {
    const tasks = givenUp === 1 ? 'One task was' : `${formatCount(givenUp)} tasks were`
    const detail = `${tasks} given up after too many failures. The pages of their experiments show why.`
    found.push({ title: 'Tasks that were given up', detail })
  }
  return found
}
