import type { ReactNode } from 'react'

import type { Experiment } from '@/api/types'
import { formatBytes, formatSeconds, formatTime, secondsBetween } from '@/lib/format'
import { RoundProgress } from '@/lib/ui/round-progress'
import { useNow } from '@/lib/use-now'

export function Facts({ experiment }: { experiment: Experiment }) {
  const { algorithm, dataset, participants, round, rounds, bytes_up: up, bytes_down: down } = experiment
  return (
    <dl className="facts">
      <Fact term="Rounds">
        <RoundProgress round={round} rounds={rounds} />
      </Fact>
      <Fact term="Algorithm">{algorithm}</Fact>
      <Fact term="Dataset">{dataset}</Fact>
      <Fact term="Participants">{participants}</Fact>
      <Fact term="Sent">{formatBytes(up)}</Fact>
      <Fact term="Received">{formatBytes(down)}</Fact>
      <Fact term="Running time">
        <RunningTime experiment={experiment} />
      </Fact>
    </dl>
  )
}

export function Fact({ term, children }: { term: string; children: ReactNode }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function RunningTime({ experiment: { started_at: started, finished_at: finished } }: { experiment: Experiment }) {
  const now = useNow(1000)
  if (started === null) return <span className="muted">not started</span>
  const seconds = secondsBetween(started, finished ?? new Date(now).toISOString())
  return (
    <span title={`Started ${formatTime(started)}`}>
      {formatSeconds(finished === null ? Math.floor(seconds) : seconds)}
    </span>
  )
}
