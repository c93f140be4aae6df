"""read_metrics.py URL: reads metrics by the parser of Prometheus's own client library, and prints each sample.

Of a histogram, which has many samples, the count and the sum stand for all.
"""

import sys
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families

text = urllib.request.urlopen(sys.argv[1], timeout=10).read().decode()
for family in text_string_to_metric_families(text):
    for sample in family.samples:
        if sample.name.endswith(("_bucket", "_sum")):
            continue
        labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
        print(family.type, sample.name, labels, int(sample.value))
