import type { Experiment } from '@/api/types'
import { formatBytes, formatSeconds, formatTime, secondsBetween } from '@/lib/format'
import { DefinitionItem } from '@/lib/ui/definition-item'
import { useNow } from '@/lib/ui/relative-time'
import { RoundProgress } from '@/lib/ui/round-progress'

import type { Traffic } from './result'

export function SummaryList({ experiment, traffic }: { experiment: Experiment; traffic: Traffic }) {
  const { algorithm, dataset, participants, round, rounds } = experiment
  return (
    <dl className="facts">
      <DefinitionItem term="Rounds">
        <RoundProgress round={round} rounds={rounds} />
      </DefinitionItem>
      <DefinitionItem term="Participants">{participants}</DefinitionItem>
      <DefinitionItem term="Elapsed">
        <Elapsed experiment={experiment} />
      </DefinitionItem>
      <DefinitionItem term="Sent / received">
        <span title={trafficTitle(traffic)}>
          {formatBytes(traffic.sent)} / {formatBytes(traffic.received)}
        </span>
      </DefinitionItem>
      <DefinitionItem term="Algorithm">{algorithm}</DefinitionItem>
      <DefinitionItem term="Dataset">{dataset}</DefinitionItem>
    </dl>
  )
}

function trafficTitle({ besides }: Traffic): string {
  const rounds = 'By all participants, in committed rounds'
  return besides > 0 ? `${rounds}; ${formatBytes(besides)} more in rounds that are open or were abandoned` : rounds
}

/** The time from the start to the end or to now, pauses included. */
function Elapsed({ experiment: { started_at: started, finished_at: finished } }: { experiment: Experiment }) {
  const now = useNow(1000)
  if (started === null) return <span className="muted">not started</span>
  const seconds = secondsBetween(started, finished ?? new Date(now).toISOString())
  return (
    <span title={`Started ${formatTime(started)}; pauses are included`}>
      {formatSeconds(finished === null ? Math.floor(seconds) : seconds)}
    </span>
  )
}
