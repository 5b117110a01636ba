import { useQuery } from '@tanstack/react-query'

import { catalogEntryQuery } from '@/api/catalog'
import type { Experiment } from '@/api/types'
import { withoutDefaults } from '@/lib/defaults'
import { toToml } from '@/lib/toml'
import { Command, ShortDigest } from '@/lib/ui/copy-button'
import { Toggles } from '@/lib/ui/toggles'

import { CHOICES, type Section, specDefaults } from './spec-defaults'

interface Props {
  experiment: Experiment
  all: boolean
  onAll: (all: boolean) => void
}

export function ConfigurationTab({ experiment, all, onAll }: Props) {
  return (
    <section aria-labelledby="specification">
      <header className="section-header">
        <h2 id="specification">Specification</h2>
        <Toggles
          label="Values"
          options={[
            ['some', 'Differs from the defaults'],
            ['all', 'All'],
          ]}
          chosen={all ? 'all' : 'some'}
          onChoose={(chosen) => {
            onAll(chosen === 'all')
          }}
        />
      </header>
      <p className="muted small spec-note">
        As TOML, for <code>ferret submit</code>. Base model <ShortDigest value={experiment.base_digest} />
      </p>
      {all ? <Toml spec={experiment.spec} /> : <Differences spec={experiment.spec} />}
    </section>
  )
}

function Differences({ spec }: { spec: Experiment['spec'] }) {
  const algorithm = useSchema('algorithm', spec)
  const dataset = useSchema('dataset', spec)
  const partition = useSchema('partition', spec)
  if (algorithm.isPending || dataset.isPending || partition.isPending) return <p className="muted">Loading…</p>
  const schemas = {
    ...(algorithm.data && { algorithm: algorithm.data.schema }),
    ...(dataset.data && { dataset: dataset.data.schema }),
    ...(partition.data && { partition: partition.data.schema }),
  }
  return <Toml spec={withoutDefaults(spec, specDefaults(spec, schemas))} />
}

function useSchema(section: Section, spec: Experiment['spec']) {
  return useQuery(catalogEntryQuery(CHOICES[section], spec[section].name))
}

function Toml({ spec }: { spec: object }) {
  return <Command text={toToml(spec as Record<string, unknown>)} label="specification" />
}
