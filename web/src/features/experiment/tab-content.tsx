import type { Experiment } from '@/api/types'

import { Charts } from './charts'
import { CheckpointSection } from './checkpoint-section'
import { CostSection } from './cost-section'
import { EventsTab } from './events-tab'
import { NoiseSection } from './noise-section'
import { ParticipantsSection } from './participants-section'
import { RejectionsSection } from './rejections-section'
import { Rounds } from './rounds'
import { SpecSection } from './spec-section'
import type { ChangeView, View } from './view'

interface Props {
  experiment: Experiment
  view: View
  onView: ChangeView
}

/** What the chosen tab shows. */
export function TabContent({ experiment, view, onView }: Props) {
  const { id } = experiment
  switch (view.tab) {
    case 'rounds':
      return (
        <>
          <Rounds id={id} chosen={view.round} />
          <NoiseSection id={id} />
        </>
      )
    case 'participants':
      return (
        <>
          <ParticipantsSection id={id} />
          <RejectionsSection experiment={experiment} />
          <Simulated experiment={experiment} />
        </>
      )
    case 'checkpoints':
      return <CheckpointSection id={id} />
    case 'specification':
      return (
        <SpecSection
          experiment={experiment}
          all={view.spec === 'all'}
          onAll={(all) => {
            onView({ spec: all ? 'all' : undefined })
          }}
        />
      )
    case 'events':
      return (
        <EventsTab
          experiment={experiment}
          kinds={view.kind ?? []}
          onKinds={(kind) => {
            onView({ kind: kind.length > 0 ? kind : undefined })
          }}
        />
      )
    default:
      return (
        <>
          <Charts experiment={experiment} view={view} onView={onView} />
          <CostSection id={id} />
        </>
      )
  }
}

/** Those that the server plays itself have no row of their own: what they did stands with each round. */
function Simulated({ experiment: { participants, spec } }: { experiment: Experiment }) {
  const simulated = spec.participants.simulated
  return (
    <p className="muted" data-testid="simulated">
      {simulated === 0
        ? `${participants} real participants are asked for.`
        : `${simulated} of ${participants} participants are simulated by the server.`}{' '}
      What each of them did in a round is in the tab Rounds.
    </p>
  )
}
