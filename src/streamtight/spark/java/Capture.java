package streamtight;

import org.apache.spark.sql.catalyst.InternalRow;

/**
 * What a task does with its partition: copy the rows, in order.
 *
 * A named class and no lambda: for a lambda Spark reads class files each time, a third of the time of a small batch.
 */
public class Capture extends scala.runtime.AbstractFunction1 implements java.io.Serializable {
  public Object apply(Object partition) {
    scala.collection.Iterator rows = (scala.collection.Iterator) partition;
    java.util.ArrayList copies = new java.util.ArrayList();
    while (rows.hasNext()) {
      copies.add(((InternalRow) rows.next()).copy());
    }
    return copies.toArray();
  }
}
