import type { Experiment } from '@/api/types'
import { COST } from '@/features/experiment/charts/chart-definitions'
import { Charts } from '@/features/experiment/charts/charts'
import type { ChangeExperimentUrl, ExperimentUrlState } from '@/features/experiment/url-state'

import { CostSection } from './cost-section'
import { PhasesSection } from './phases-section'
import { WorkersSection } from './workers-section'

interface Props {
  experiment: Experiment
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
}

/** The experiment's time, memory and machines. */
export default function SystemTab({ experiment, view, onView }: Props) {
  const { id } = experiment
  return (
    <>
      <PhasesSection id={id} />
      <CostSection id={id} />
      <Charts title="By round" kinds={COST} experiment={experiment} view={view} onView={onView} />
      <WorkersSection id={id} />
    </>
  )
}
