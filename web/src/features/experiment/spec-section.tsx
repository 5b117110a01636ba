import type { Experiment } from '@/api/types'
import { Command } from '@/lib/ui/command'
import { Digest } from '@/lib/ui/digest'

export function SpecSection({ experiment }: { experiment: Experiment }) {
  return (
    <section aria-labelledby="specification">
      <header className="section-header">
        <h2 id="specification">Specification</h2>
        <span className="muted small">
          base model <Digest value={experiment.base_digest} />
        </span>
      </header>
      <Command text={JSON.stringify(experiment.spec, null, 2)} label="specification" />
    </section>
  )
}
