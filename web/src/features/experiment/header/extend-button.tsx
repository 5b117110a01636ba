import { extendExperiment } from '@/api/actions'
import type { Experiment } from '@/api/types'
import { useLifecycleAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

export function ExtendButton({ experiment, primary = false }: { experiment: Experiment; primary?: boolean }) {
  const extend = useLifecycleAction(experiment.id, (rounds: number) => extendExperiment(experiment, rounds))
  return (
    <ActionDialog
      label="Extend"
      primary={primary}
      title={`Add rounds to “${experiment.name}”`}
      dismiss="Close"
      pending={extend.pending}
      problem={extend.problem}
      onSubmit={(form) => extend.run(Number(form.get('rounds')))}
    >
      <p>
        {experiment.stopped
          ? `It stopped early after round ${experiment.round} of ${experiment.rounds}. It continues from there with new patience.`
          : `It has ${experiment.rounds} rounds now.`}
        {experiment.state === 'completed' && ' It runs again, starting from its last model.'}
      </p>
      <Field label="Rounds to add">
        <input name="rounds" type="number" min={1} step={1} defaultValue={experiment.rounds} required />
      </Field>
    </ActionDialog>
  )
}
